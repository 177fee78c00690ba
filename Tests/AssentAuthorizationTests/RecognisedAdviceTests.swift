import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("What a policy recognises, and where it puts a transaction's id") struct RecognisedAdviceTests {
    private struct Broken: Error {}

    private func policy(_ change: (inout AuthorizationPolicy) -> Void) throws -> AuthorizationPolicy {
        var policy = try AuthorizationPolicy("\(api)/", approve: agree)
        change(&policy)
        return policy
    }

    /// What a resource of its own kind says to each request, also to one that was approved.
    private static func own() -> HTTPReply { .json(403, ["wants": "an approval"]) }

    private static let recognise: @Sendable (HTTPReply) async throws -> Advice? = { reply in
        reply.status == 403 ? try Advice(transactionID: txid) : nil
    }

    @Test("What is recognised again in the reply to an approved payment is an unknown outcome, and no second prompt")
    func again() async throws {
        let world = World()
        world.change { $0.gateway = { _ in Self.own() } }
        let asked = Locked(0)
        let client = try await world.client(policies: [
            policy {
                $0.recognise = Self.recognise
                $0.approve = { approval in
                    asked.withLock { $0 += 1 }
                    return agree(&approval)
                }
            }
        ])
        let error = await #expect(throws: AuthorizationError.self) { try await client.send(try post()) }
        #expect(error?.code == .outcomeUnknown && error?.pending?.transactionID == txid)
        #expect(asked.withLock { $0 } == 1 && world.calls.count == 2)
        // What only reads had no effect.
        world.change { $0.statement = { $0["contentType"] = nil } }
        await #expect(throws: AuthorizationError.like(.refused)) { try await client.send(try get()) }
        #expect(asked.withLock { $0 } == 2 && world.calls.count == 4)
    }

    @Test("An advice that the SDK knows is not shown to a recogniser, nor is an event stream")
    func last() async throws {
        let world = World()
        let shown = Locked<[Int]>([])
        let client = try await world.client(policies: [
            policy {
                $0.recognise = { reply in
                    shown.withLock { $0.append(reply.status) }
                    return nil
                }
            }
        ])
        #expect(try await client.send(try post()).status == 201)
        // Of the two replies the second one alone, which is no advice.
        #expect(shown.withLock { $0 } == [201])
        world.change {
            $0.gateway = { _ in
                HTTPReply(
                    HTTPResponse(status: .ok, headerFields: [.contentType: "Text/Event-Stream; charset=utf-8"]),
                    body: HTTPBody(length: nil, isReplayable: false) {
                        {
                            Issue.record("the stream should not be read")
                            return nil
                        }
                    })
            }
        }
        #expect(try await client.send(try get()).status == 200)
        #expect(shown.withLock { $0 } == [201])
    }

    @Test("An advice for another server that is recognised is refused in each form that names one, and asks nobody")
    func foreign() async throws {
        for server in ["https://evil.example/am", "https://am.example.com/other", "http://am.example.com/am"] {
            let advice = try Advice(transactionID: txid)
            let field = try advice.challengeFieldValue(server: server, realm: "/")
            let location = try advice.redirectLocation(server: server, goto: api, realm: "/")
            for recognise in [
                { _ in try Advice(challenge: field) }, { _ in try Advice(location: location) },
            ] as [@Sendable (HTTPReply) async throws -> Advice?] {
                let world = World()
                world.change { $0.gateway = { _ in Self.own() } }
                let client = try await world.client(policies: [policy { $0.recognise = recognise }])
                await #expect(throws: AuthorizationError.like(.untrustedAdvice)) { try await client.send(try post()) }
                #expect(world.calls.count == 1 && world.steps.isEmpty)
            }
        }
    }

    @Test("A policy that cannot place the id fails the call before the user is asked")
    func failingDecoration() async throws {
        let world = World()
        let client = try await world.client(policies: [
            policy {
                $0.decorate = { _, _ in throw Broken() }
                $0.approve = { _ in
                    Issue.record("nobody should be asked")
                    return .decline
                }
            }
        ])
        await #expect(throws: Broken.self) { try await client.send(try post()) }
        #expect(world.calls.count == 1 && world.steps.isEmpty)
    }

    @Test("A question about an outcome has its id where the policy puts it")
    func question() async throws {
        let world = World()
        world.change { $0.gateway = { $0.field("X-Approval") == txid ? .json(409, [:]) : nil } }
        let client = try await world.client(policies: [
            policy {
                $0.decorate = { call, id in
                    call.request.headerFields[try #require(HTTPField.Name("X-Approval"))] = id
                }
            }
        ])
        let pending = PendingRequest(transactionID: txid, idempotencyKey: "k")
        #expect(try await client.ask(try post(), about: pending).status == 409)
        let sent = try #require(world.calls.last)
        #expect(sent.url == "\(api)/transfers" && sent.field("X-TxID") == nil && sent.field("Idempotency-Key") == "k")
        #expect(world.calls.count == 1 && world.steps.isEmpty)
    }
}
