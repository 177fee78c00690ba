import AssentCore
import Testing

@testable import AssentServer

@Suite("A policy set with selfEvaluation: false, over REST and at the gateway")
struct SelfEvaluationRouteTests {
    private static let question = #"{"resources":["https://bank.example:443/see"],"application":"rest"}"#
    private static let withdraw = #"{"resources":["https://bank.example:443/withdraw"],"application":"rest"}"#

    private static func evaluate(_ fixture: ServerFixture, _ caller: String, _ body: String) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.json("policies?_action=evaluate"),
            [("Content-Type", "application/json")] + ServerFixture.session(caller), text: body)
    }

    /// The fixture's file with the key in these sets.
    private static func closing(_ sets: String...) -> (String) -> String {
        { text in
            sets.reduce(text) { text, set in
                text.replacing(
                    "      \(set):\n        policies:\n",
                    with: "      \(set):\n        selfEvaluation: false\n        policies:\n", maxReplacements: 1)
            }
        }
    }

    @Test("Users are 403, with a transaction too, and none is begun; enforcement points are told, about users as well")
    func closed() async throws {
        try await ServerFixture.run(editing: Self.closing("rest")) { fixture in
            let (ana, pat) = (try await fixture.session("ana"), try await fixture.session("pat"))
            for body in [Self.question, Self.withdraw] {
                let denied = try await Self.evaluate(fixture, ana, body)
                #expect(denied.status == 403)
                #expect(denied.text == #"{"code":403,"reason":"Forbidden","message":"Permission denied."}"#)
            }
            #expect(try await fixture.count("transactions") == 0)
            let about = Self.question.dropLast() + #","subject":{"ssoToken":"\#(ana)"}}"#
            #expect(try await Self.evaluate(fixture, ana, String(about)).status == 403)
            let told = try await Self.evaluate(fixture, pat, String(about))
            #expect(told.status == 200 && told.json.array?.first?["actions"] == ["GET": true, "POST": false])
        }
    }

    @Test("Where nothing is said, a user asks about their own access")
    func open() async throws {
        try await ServerFixture.run(editing: Self.closing("bank")) { fixture in
            let ana = try await fixture.session("ana")
            let told = try await Self.evaluate(fixture, ana, Self.question)
            #expect(told.status == 200 && told.json.array?.first?["actions"] == ["GET": true, "POST": false])
        }
    }

    @Test("The gateway asks for its users all the same")
    func gateway() async throws {
        try await ServerFixture.run(editing: Self.closing("bank")) { fixture in
            let ana = try await fixture.session("ana")
            let denied = try await Self.evaluate(
                fixture, ana, #"{"resources":["https://localhost:1/accounts"],"application":"bank"}"#)
            #expect(denied.status == 403, "\(denied.text)")
            let read = try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.session(ana))
            #expect(read.status == 200, "\(read.text)")
        }
    }
}
