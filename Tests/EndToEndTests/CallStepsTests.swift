import Assent
import AssentCore
import AssentEngine
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentDemo
@testable import AssentServer

/// By the façade alone, over the real transport, TLS and the real gateway, to a service that keeps each call.
@Suite("The steps of a user's call, from the app to the service and back")
struct CallStepsTests {
    private struct Probe: IntegrityProbe {
        let kind = IntegrityKind.debugger
        let found = Locked<String?>("A test says so.")

        func finding() -> String? { found.withLock { $0 } }
    }

    /// A layer of the app that puts another token in the place of the right one.
    private struct Forging: HTTPMiddleware {
        let gateway: Origin
        let isOn = Locked(true)

        func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
            var call = call
            if isOn.withLock({ $0 }), try call.origin == gateway {
                call.request.headerFields[.authorization] = "Bearer a.b.c"
            }
            return try await next.send(call)
        }
    }

    /// Leads what is for the gateway a way of its own, and keeps what the gateway has answered.
    private struct Answers: HTTPTransport {
        let gateway: Origin
        let way: Locked<any HTTPTransport>
        let others: any HTTPTransport
        let seen = Locked<[(status: Int, challenge: String)]>([])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            guard try call.origin == gateway else { return try await others.send(call) }
            let reply = try await way.withLock { $0 }.send(call)
            let challenge = reply.response.headerFields[.wwwAuthenticate] ?? ""
            seen.withLock { $0.append((reply.status, challenge)) }
            return reply
        }

        var statuses: [Int] { seen.withLock { $0.map(\.status) } }
        var challenge: String { seen.withLock { $0.last?.challenge } ?? "" }
    }

    /// The ledger's routes, one whose scope the app has not, and one for which there is no policy.
    private static func routed(_ file: String, _ ledger: LedgerService) -> String {
        let file = ledger.routed(file)
        let upstream = file.firstMatch(of: /upstream: "(http:[^"]+)"/).map { String($0.1) } ?? ""
        func route(_ name: String, scope: String) -> String {
            """
                - name: \(name)
                  path: /\(name)
                  upstream: "\(upstream)"
                  realm: alpha
                  policySet: bank
                  scopes: [\(scope)]

            """
        }
        let routes = route("strict", scope: "email") + route("unruled", scope: "accounts")
        return file.replacing("  routes:\n", with: "  routes:\n" + routes)
    }

    private static func mispinned(_ story: Story) throws -> NIOTransport {
        let others = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
        var roots = TrustRoots.system
        if let file = story.world.endpoints.authorityFile { roots = .pemFile(file) }
        return try NIOTransport(
            configuration: NIOTransportConfiguration(trustRoots: roots, pins: ["localhost": .pins(others)])
                .withLeastLimit(.seconds(Patience.seconds)),
            clock: story.clock, logger: story.logger)
    }

    /// What the app is told.
    private static func told(_ assent: Assent, _ path: String) async -> String {
        do throws(ResourceError) {
            let reply = try await assent.userClient.sendAuthenticatedRequest(.get(path))
            return "\(reply.status)"
        } catch {
            return "\(error.domain) \(error.number)"
        }
    }

    @Test("22 SDK, token, pins, gateway, look-up, scope, policy, service and back: the first that refuses decides")
    func steps() async throws {
        try await LedgerService.run { ledger in
            try await World.run(
                logger: CollectingLog().logger, editing: { Self.routed($0, ledger) }
            ) { story in
                let (gateway, mispinned) = (try Origin(story.gateway), try Self.mispinned(story))
                let (probe, forging) = (Probe(), Forging(gateway: gateway))
                let way = Locked<any HTTPTransport>(mispinned)
                let answers = Answers(gateway: gateway, way: way, others: story.transport)
                let usual = try story.makeAssent()
                var configuration = usual.configuration
                await usual.shutdown()
                configuration.client.scopes = ["openid", "accounts"]
                configuration.resourceBase = story.gateway
                configuration.layers = [forging]
                configuration.integrity.probes = [probe]
                configuration.integrity.controls = IntegrityControls(debugger: .refuse, preload: .off, rooted: .off)
                configuration.integrity.tellsServer = false
                configuration.transport = answers
                let assent = try Assent(configuration)

                // The same call each time. All that comes later is wrong as well, and is put right one by one.
                let path = "strict/x"
                #expect(await Self.told(assent, path) == "generic 9102")
                probe.found.withLock { $0 = nil }
                #expect(await Self.told(assent, path) == "fetchResource 9010")
                try await story.signIn(assent, forcing: false)
                #expect(await Self.told(assent, path) == "url -1202")
                #expect(answers.statuses.isEmpty, "the gateway has heard nothing yet")

                way.withLock { $0 = story.transport }
                #expect(await Self.told(assent, path) == "401")
                #expect(Set(answers.statuses) == [401] && answers.challenge.contains("invalid_token"))
                forging.isOn.withLock { $0 = false }
                try await Self.endSession(of: assent, in: story)
                let before = answers.statuses.count
                // The token is the right one, and cannot be renewed after the look-up has refused it.
                #expect(await Self.told(assent, path) == "fetchResource 9010")
                #expect(answers.statuses.dropFirst(before) == [401] && answers.challenge.contains("invalid_token"))
                try await story.signIn(assent, forcing: false)
                #expect(await Self.told(assent, path) == "403")
                #expect(answers.challenge.contains("insufficient_scope"))
                #expect(await Self.told(assent, "unruled/x") == "403")
                #expect(answers.challenge.isEmpty, "no scope would help")
                #expect(ledger.entries.isEmpty, "the service has heard nothing yet")

                let reply = try await assent.userClient.sendAuthenticatedRequest(.get("ledger/x"))
                #expect(reply.status == 200 && reply.data == ledger.answer(to: []))
                #expect(ledger.entries.map(\.target) == ["/ledger/x"])
                await assent.shutdown()
                await mispinned.shutdown()
            }
        }
    }

    /// Ends the user's session at the server, of which the app hears nothing.
    private static func endSession(of assent: Assent, in story: Story) async throws {
        let token = try #require(try await assent.tokens.session()).token
        let sessions = Sessions(story.world.server.context)
        let id = try #require(try await sessions.live(token: token)).id
        let hasEnded = try await sessions.end(id: id)
        #expect(hasEnded)
    }
}
