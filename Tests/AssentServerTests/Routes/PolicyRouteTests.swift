import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Policy decisions over REST", .server)
struct PolicyRouteTests {
    private func evaluate(
        _ fixture: ServerFixture, _ caller: String?, _ body: String, action: String = "evaluate"
    ) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.json("policies?_action=\(action)"),
            [("Content-Type", "application/json")] + (caller.map(ServerFixture.session) ?? []), text: body)
    }

    private static let withdraw = "https://bank.example:443/withdraw?amount=100.00"

    private func body(_ resource: String = withdraw, id: String? = nil) -> String {
        let environment = id.map { #","environment":{"TxId":["\#($0)"]}"# } ?? ""
        return #"{"resources":["\#(resource)"],"application":"rest"\#(environment)}"#
    }

    @Test("A transaction is advised with ttl 0, grants once, and is advised anew after that")
    func transaction() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let advised = try await evaluate(fixture, session, body())
        #expect(advised.status == 200)
        let id = try #require(
            advised.json.array?.first?["advices"]?["TransactionConditionAdvice"]?.strings?.first)
        #expect(
            advised.text
                == #"[{"resource":"\#(Self.withdraw)","actions":{},"attributes":{},"advices":{"TransactionConditionAdvice":["\#(id)"]},"ttl":0}]"#
        )
        let early = try await evaluate(fixture, session, body(id: id))
        #expect(early.json.array?.first?["actions"] == [:])
        #expect(try await fixture.approve(id, session: session).json["tokenId"]?.string == session)
        let other = try await evaluate(
            fixture, session, body("https://bank.example:443/withdraw?amount=900.00", id: id))
        #expect(other.json.array?.first?["actions"] == [:])
        let granted = try await evaluate(fixture, session, body(id: id))
        #expect(
            granted.text
                == #"[{"resource":"\#(Self.withdraw)","actions":{"GET":true,"POST":true},"attributes":{},"advices":{},"ttl":0}]"#
        )
        let again = try await evaluate(fixture, session, body(id: id))
        let next = again.json.array?.first?["advices"]?["TransactionConditionAdvice"]?.strings?.first
        #expect(again.json.array?.first?["actions"] == [:] && next != nil && next != id)
    }

    @Test("Each resource is answered as it was written, with the largest ttl where no transaction decided")
    func plain() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let reply = try await evaluate(
            fixture, session,
            #"{"resources":["https://BANK.example/see","https://bank.example:443/else","shop://x","https://bank.example/a/../see"],"application":"rest"}"#
        )
        let decisions = try #require(reply.json.array)
        #expect(
            decisions.map { $0["resource"]?.string } == [
                "https://BANK.example/see", "https://bank.example:443/else", "shop://x",
                "https://bank.example/a/../see",
            ])
        #expect(decisions.first?["actions"] == ["GET": true, "POST": false])
        #expect(decisions.first?["ttl"] == .integer(Int64.max))
        for decision in decisions.dropFirst() { #expect(decision["actions"] == [:] && decision["advices"] == [:]) }
        #expect(decisions.allSatisfy { $0["reasons"] == nil })
    }

    @Test("Only an enforcement point may ask about another's session")
    func roles() async throws {
        let fixture = try #require(ServerFixture.shared)
        let ana = try await fixture.session("ana")
        let ben = try await fixture.session("ben")
        let pat = try await fixture.session("pat")
        let about =
            #"{"resources":["https://bank.example:443/see"],"application":"rest","subject":{"ssoToken":"\#(ana)"}}"#
        let denied = try await evaluate(fixture, ben, about)
        #expect(denied.status == 403)
        #expect(denied.text == #"{"code":403,"reason":"Forbidden","message":"Permission denied."}"#)
        #expect(try await evaluate(fixture, ana, about).status == 200)
        let allowed = try await evaluate(fixture, pat, about)
        #expect(allowed.json.array?.first?["actions"] == ["GET": true, "POST": false])
        let claims = try await evaluate(
            fixture, pat,
            #"{"resources":["https://bank.example:443/see"],"application":"rest","subject":{"claims":{"sub":"ana"}}}"#)
        #expect(claims.status == 200 && claims.json.array?.first?["actions"] == [:])
    }

    @Test("An enforcement point that asks for them is told the reasons, other users are not")
    func reasons() async throws {
        let fixture = try #require(ServerFixture.shared)
        let (ana, pat) = (try await fixture.session("ana"), try await fixture.session("pat"))
        let question =
            #"{"resources":["https://localhost:1/notes"],"application":"bank","subject":{"ssoToken":"\#(ana)"}}"#
        let told = try await evaluate(fixture, pat, question, action: "evaluate&_explain=true")
        let reasons = try #require(told.json.array?.first?["reasons"]?.strings)
        #expect(reasons.contains { $0.contains("binds method or body") }, "\(reasons)")
        for (caller, action) in [(ana, "evaluate&_explain=true"), (pat, "evaluate")] {
            let reply = try await evaluate(fixture, caller, question, action: action)
            #expect(reply.status == 200 && reply.json.array?.first?["reasons"] == nil)
        }
    }

    @Test("An ended session as the subject is granted nothing")
    func endedSubject() async throws {
        let fixture = try #require(ServerFixture.shared)
        let pat = try await fixture.session("pat")
        let reply = try await evaluate(
            fixture, pat,
            #"{"resources":["https://bank.example:443/see"],"application":"rest","subject":{"ssoToken":"gone"}}"#)
        #expect(reply.status == 200 && reply.json.array?.first?["actions"] == [:])
    }

    @Test(
        "Bad questions are refused",
        arguments: [
            (#"{"resources":["https://x/"],"application":"none"}"#, 404, "none application not found in realm."),
            (#"{"application":"rest"}"#, 400, "Invalid value resources"),
            (#"{"resources":[],"application":"rest"}"#, 400, "Invalid value resources"),
            (#"{"resources":[7],"application":"rest"}"#, 400, "Invalid value resources"),
            (#"{"resources":["https://x/"],"application":"rest","subject":"ana"}"#, 400, "Invalid value subject"),
            (#"{"resources":["https://x/"],"application":"rest","subject":{}}"#, 400, "Invalid value subject"),
            (
                #"{"resources":["https://x/"],"application":"rest","subject":{"ssoToken":"a.b.c"}}"#, 400,
                "Invalid value subject"
            ),
            (
                #"{"resources":["https://x/"],"application":"rest","subject":{"ssoToken":""}}"#, 400,
                "Invalid value subject"
            ),
            (
                #"{"resources":["https://x/"],"application":"rest","subject":{"ssoToken":"go ne"}}"#, 400,
                "Invalid value subject"
            ),
            (
                #"{"resources":["https://x/"],"application":"rest","subject":{"ssoToken":"a\u0000"}}"#, 400,
                "Invalid value subject"
            ),
            (#"{"resources":["https://x/"],"application":"rest","environment":[]}"#, 400, "Invalid value environment"),
            (
                #"{"resources":["https://x/"],"application":"rest","environment":{"a":"b"}}"#, 400,
                "Invalid value environment"
            ),
        ])
    func refused(_ body: String, _ status: Int, _ message: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await evaluate(fixture, try await fixture.session("pat"), body)
        #expect(reply.status == status)
        #expect(reply.json["message"]?.string == message)
    }

    @Test("No session is 401, whatever is asked; an unknown action is 501")
    func access() async throws {
        let fixture = try #require(ServerFixture.shared)
        for caller in [nil, "x"] {
            let reply = try await evaluate(fixture, caller, "{")
            #expect(reply.text == #"{"code":401,"reason":"Unauthorized","message":"Access Denied"}"#)
        }
        let session = try await fixture.session()
        let reply = try await evaluate(fixture, session, "{}", action: "guess")
        #expect(
            reply.text
                == #"{"code":501,"reason":"Not Implemented","message":"Action guess not implemented for this resource"}"#
        )
        #expect(try await fixture.send("GET", fixture.json("policies"), ServerFixture.session(session)).status == 403)
    }

    @Test("A session of another realm decides nothing here")
    func otherRealm() async throws {
        let fixture = try #require(ServerFixture.shared)
        let bob = try await fixture.session("bob", realm: "beta")
        let ana = try await fixture.session("ana")
        let context = fixture.server.context
        let found = try await Users(context).find(username: "bob", realm: "/beta")
        let user = try #require(found)
        for roles in ["", "pep", "admin"] {
            _ = try await context.database.run(
                SQLStatement("UPDATE users SET roles = \(roles) WHERE id = \(user.id)"))
            for subject in ["", #","subject":{"ssoToken":"\#(ana)"}"#, #","subject":{"claims":{"sub":"ana"}}"#] {
                let reply = try await evaluate(
                    fixture, bob, #"{"resources":["https://bank.example:443/see"],"application":"rest"\#(subject)}"#)
                #expect(reply.status == 403, "\(roles) \(subject)")
                #expect(reply.json["message"] == "Permission denied.")
            }
        }
    }

    @Test("An access token is no subject, and neither is its session's end an error")
    func accessTokenAsSubject() async throws {
        let fixture = try #require(ServerFixture.shared)
        let ana = try await fixture.session("ana")
        let access = try await fixture.tokens(session: ana).access
        func ask(_ token: String) async throws -> Answer {
            try await evaluate(
                fixture, try await fixture.session("pat"),
                #"{"resources":["https://bank.example:443/see"],"application":"rest","subject":{"ssoToken":"\#(token)"}}"#
            )
        }
        let reply = try await ask(access)
        #expect(reply.text == #"{"code":400,"reason":"Bad Request","message":"Invalid value subject"}"#)
        try await fixture.signOut(ana)
        #expect(try await ask(ana).json.array?.first?["actions"] == [:])
    }
}
