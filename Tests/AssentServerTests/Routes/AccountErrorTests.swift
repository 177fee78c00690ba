import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What a client is told of accounts, upgrades and what is not built")
struct AccountErrorTests {
    private func signIn(
        _ fixture: ServerFixture, _ username: String, password: String, realm: String = "alpha",
        query: [(String, String)] = [], fields: [(String, String)] = []
    ) async throws -> Answer {
        try await fixture.runJourney(
            realm: realm, [("authIndexType", "service"), ("authIndexValue", "Quick")] + query, fields
        ) { type in
            switch type {
            case "NameCallback": .string(username)
            case "PasswordCallback": .string(password)
            default: nil
            }
        }
    }

    @Test(
        "A failed journey in a transaction: 200 with the token that came, as AM does, where the realm does not say 401")
    func failedTransaction() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session("bob", realm: "beta")
            let fields = ServerFixture.session(session)
            let body = #"{"resources":["https://beta.example:443/pay"],"application":"shop"}"#
            let advised = try await fixture.send(
                "POST", fixture.json("policies?_action=evaluate", realm: "beta"),
                fields + [("Content-Type", "application/json")], text: body)
            let id = try #require(
                advised.json.array?.first?["advices"]?["TransactionConditionAdvice"]?.strings?.first)
            let declined = try await fixture.runJourney(
                realm: "beta", [("authIndexType", "transaction"), ("authIndexValue", id)], fields
            ) { $0 == "ConfirmationCallback" ? 1 : nil }
            #expect(declined.status == 200)
            #expect(
                declined.json
                    == ["tokenId": .string(session), "successUrl": "/", "realm": "/beta", "failure": "declined"])
            #expect(declined["Set-Cookie"] == nil)
            let again = try await fixture.send(
                "POST", fixture.json("policies?_action=evaluate", realm: "beta"),
                fields + [("Content-Type", "application/json")],
                text: body.dropLast() + #","environment":{"TxId":["\#(id)"]}}"#)
            #expect(again.json.array?.first?["actions"] == [:])
        }
    }

    @Test("An account that is not active is told so after the right password alone")
    func inactive() async throws {
        try await ServerFixture.run { fixture in
            let user = try #require(await Users(fixture.server.context).find(username: "ben", realm: "/alpha"))
            try await Users(fixture.server.context).setActive(false, userID: user.id)
            let right = try await signIn(fixture, "ben", password: fixture.account("ben").password.reveal())
            #expect(right.status == 401)
            #expect(
                right.text
                    == #"{"code":401,"reason":"Unauthorized","message":"User not Active","detail":{"errorCode":"104","failureUrl":""}}"#
            )
            let wrong = try await signIn(fixture, "ben", password: "wrong")
            #expect(
                wrong.text
                    == #"{"code":401,"reason":"Unauthorized","message":"Login failure","detail":{"failureUrl":""}}"#)
        }
    }

    @Test("After too many wrong passwords the account is locked, for the right one too, and for an unknown name alike")
    func locked() async throws {
        try await ServerFixture.run { fixture in
            let locked =
                #"{"code":401,"reason":"Unauthorized","message":"Your account has been locked.","detail":{"errorCode":"112","failureUrl":""}}"#
            for name in ["ben", "nobody"] {
                var replies: [String] = []
                for _ in 0..<40 where replies.last != locked {
                    replies.append(try await signIn(fixture, name, password: "wrong").text)
                }
                #expect(replies.count > 1 && replies.last == locked)
            }
            let right = try await signIn(fixture, "ben", password: fixture.account("ben").password.reveal())
            #expect(right.status == 401 && right.text == locked)
            #expect(try await signIn(fixture, "ana", password: fixture.account("ana").password.reveal()).status == 200)
        }
    }

    @Test("A session cannot be upgraded as somebody else, and stays")
    func upgradeAsAnother() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session("ana")
            let reply = try await signIn(
                fixture, "ben", password: fixture.account("ben").password.reveal(), query: [("ForceAuth", "true")],
                fields: ServerFixture.session(session))
            #expect(reply.status == 401)
            #expect(
                reply.text
                    == #"{"code":401,"reason":"Unauthorized","message":"Session Upgrade fails since user is different than original authenticated user","detail":{"errorCode":"124"}}"#
            )
            let info = try await fixture.send(
                "POST", fixture.json("sessions?_action=getSessionInfo"), ServerFixture.session(session))
            #expect(info.status == 200 && info.json["username"] == "ana")
        }
    }

    @Test(
        "Session properties cannot be read or set by clients: the actions do not exist",
        arguments: [
            "getSessionProperties", "updateSessionProperties", "getProperty", "setProperty", "deleteProperty",
        ])
    func sessionProperties(_ action: String) async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let reply = try await fixture.send(
                "POST", fixture.json("sessions?_action=\(action)"),
                ServerFixture.session(session) + [("Content-Type", "application/json")], text: #"{"secret":"1"}"#)
            #expect(reply.status == 501)
            #expect(
                reply.text
                    == #"{"code":501,"reason":"Not Implemented","message":"Action \#(action) not implemented for this resource"}"#
            )
        }
    }
}
