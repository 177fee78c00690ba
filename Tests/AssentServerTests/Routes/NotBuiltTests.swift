import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("What AM has and this server has not, said in AM's words", .server)
struct NotBuiltTests {
    private static let notFound = #"{"code":404,"reason":"Not Found","message":"Resource not found."}"#

    @Test("There is no limit of sessions: a user's fifty-first is as good as the first, which stays")
    func sessionQuota() async throws {
        let fixture = try #require(ServerFixture.shared)
        let first = try await fixture.session()
        for _ in 0..<50 { _ = try await fixture.session() }
        let info = try await fixture.send(
            "POST", fixture.json("sessions?_action=getSessionInfo"), ServerFixture.session(first))
        #expect(info.status == 200)
    }

    @Test("Policies cannot be made, changed or deleted over the wire", arguments: ["PUT", "DELETE", "PATCH"])
    func policyAdministration(_ method: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let fields = ServerFixture.session(try await fixture.session()) + ServerFixture.jsonFields
        let one = try await fixture.send(method, fixture.json("policies/mine"), fields, text: "{}")
        let all = try await fixture.send(method, fixture.json("policies"), fields, text: "{}")
        let made = try await fixture.send("POST", fixture.json("policies?_action=create"), fields, text: "{}")
        for refusal in [one, all, made] {
            #expect(refusal.status == 405)
            #expect(refusal.json["message"]?.string?.contains("realms.<name>.policySets") == true)
        }
        let moved = try await fixture.send("POST", fixture.json("policies?_action=move"), fields, text: "{}")
        #expect(
            moved.text
                == #"{"code":501,"reason":"Not Implemented","message":"Action move not implemented for this resource"}"#
        )
    }

    @Test(
        "There is no such endpoint, with a session and without",
        arguments: ["users/ana", "decisioncombiners", "dashboard/assigned"])
    func endpoints(_ path: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        for fields in [[], ServerFixture.session(try await fixture.session())] {
            let reply = try await fixture.send("GET", fixture.json(path), fields)
            #expect(reply.status == 404 && reply.text == Self.notFound)
        }
    }

    @Test("A request without a version is answered, whatever the endpoint")
    func noVersion() async throws {
        let fixture = try #require(ServerFixture.shared)
        #expect(try await fixture.send("GET", fixture.json("serverinfo/*")).status == 200)
        let reply = try await fixture.send(
            "POST", fixture.json("sessions?_action=getSessionInfo"),
            [("iPlanetDirectoryPro", try await fixture.session())])
        #expect(reply.status == 200)
    }

    @Test("A subject made of claims, or of a jwt, is granted nothing that needs a session, and no error tells why")
    func claims() async throws {
        let fixture = try #require(ServerFixture.shared)
        let fields = ServerFixture.session(try await fixture.session("pat")) + ServerFixture.jsonFields
        for subject in [#"{"claims":{"sub":"ana"}}"#, #"{"jwt":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbmEifQ."}"#] {
            let reply = try await fixture.send(
                "POST", fixture.json("policies?_action=evaluate"), fields,
                text: #"{"resources":["https://bank.example:443/see"],"application":"rest","subject":\#(subject)}"#)
            #expect(reply.status == 200 && reply.json.array?.first?["actions"] == [:])
            #expect(reply.json.array?.first?["advices"] == [:])
        }
    }

    @Test("The gateway sends nobody to a sign-in by itself: it says 401 with the challenge, and forwards nothing")
    func noSessionAtGateway() async throws {
        let fixture = try #require(ServerFixture.shared)
        let before = fixture.upstream.requests.count
        let reply = try await fixture.send("GET", fixture.gateway("/accounts"))
        #expect(reply.status == 401)
        #expect(reply["WWW-Authenticate"]?.hasPrefix(#"SSOADVICE realm="/alpha",am_uri="#) == true)
        #expect(fixture.upstream.requests.count == before)
    }
}
