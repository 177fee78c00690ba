import AssentCore
import AsyncHTTPClient
import Foundation
import TestSupport
import Testing

@testable import AssentServer

@Suite("assent serve --gateway-only as a process")
struct GatewayKillTests {
    /// A server, a gateway elsewhere before a service of the test, and Ana's session with an approved transfer.
    private struct Scene: Sendable {
        let world: ProcessWorld
        let serve: ServeProcess
        let upstream: TestUpstream
        let session: String
        let client: HTTPClient
        private let gateways = Locked<[WatchedProcess]>([])

        init(
            _ world: ProcessWorld, serve: ServeProcess, upstream: TestUpstream, session: String, client: HTTPClient
        ) {
            self.world = world
            self.serve = serve
            self.upstream = upstream
            self.session = session
            self.client = client
        }

        func killServer() async throws {
            serve.process.signal(SIGKILL)
            #expect(await serve.process.exit() == -SIGKILL)
        }

        /// Starts another one in the place of the one that was killed.
        @discardableResult
        func startServer() async throws -> ServeProcess {
            try await world.start()
        }

        func gateway(through relay: EngineRelay? = nil) async throws -> GatewayProcess {
            let gateway = try await GatewayProcess.start(
                relay.map { "https://localhost:\($0.port)/am" } ?? serve.server, directory: world.directory,
                upstream: upstream.port, client: client)
            gateways.withLock { $0.append(gateway.process) }
            return gateway
        }

        func approved(at gateway: GatewayProcess) async throws -> String {
            let id = try ServerFixture.transactionID(try await gateway.transfer(session: session))
            #expect(try await serve.approve(id, session: session).status == 200)
            return id
        }

        /// Waits until the server has been told that the service answered, once. A report is repeated after a pause.
        func hearsOutcome(of id: String, at gateway: GatewayProcess) async throws {
            var again = try await gateway.transfer(session: session, transaction: id)
            while again.status == 503 || again.json["outcome"] == ["state": "forwarded"], !Task.isCancelled {
                await Task.yield()
                again = try await gateway.transfer(session: session, transaction: id)
            }
            #expect(again.status == 409 && again.json["outcome"] == ["state": "answered", "status": 201])
            #expect(upstream.requests.count == 1)
        }

        func stop() async { for process in gateways.withLock({ $0 }) { await process.stop() } }
    }

    private static func run(_ body: (Scene) async throws -> Void) async throws {
        let upstream = try await TestUpstream.start()
        let client = ServeProcess.makeClient()
        try await ProcessWorld.run(upstream: upstream.port, restarts: true) { world in
            try world.edit(GatewayProcess.admitting)
            let serve = try await world.start()
            let session = try await serve.signIn("ana", password: #require(serve.password))
            let scene = Scene(world, serve: serve, upstream: upstream, session: session, client: client)
            do {
                try await body(scene)
            } catch {
                await scene.stop()
                throw error
            }
            await scene.stop()
        }
        try? await client.shutdown()
        await upstream.stop()
    }

    @Test("Killed between take and outcome: the service has one request, and the next gateway sends no second one")
    func killed() async throws {
        try await Self.run { scene in
            let first = try await scene.gateway()
            let id = try await scene.approved(at: first)
            scene.upstream.hold()
            let reply = Task { try await first.transfer(session: scene.session, transaction: id) }
            await scene.upstream.waitUntilHeld()
            first.process.signal(SIGKILL)
            #expect(await first.process.exit() == -SIGKILL)
            _ = try? await reply.value
            await scene.upstream.release()
            scene.upstream.answer(with: TestUpstream.answering)
            let second = try await scene.gateway()
            for _ in 0..<3 {
                let again = try await second.transfer(session: scene.session, transaction: id)
                #expect(again.status == 409 && again.json["outcome"] == ["state": "forwarded"])
            }
            #expect(scene.upstream.requests.count == 1)
            // What was not asked yet is as good as ever.
            let other = try await scene.approved(at: second)
            #expect(try await second.transfer(session: scene.session, transaction: other).status == 201)
            #expect(scene.upstream.requests.count == 2)
        }
    }

    /// When a gateway is killed: before the engine has its question, before it has the answer, before the engine has
    /// its report.
    enum Moment: CaseIterable { case question, answer, report }

    @Test(
        "Killed at each step between question and report: the service never has two requests",
        arguments: Moment.allCases)
    func killed(at moment: Moment) async throws {
        try await Self.run { scene in
            let relay = try await EngineRelay(scene.serve, directory: scene.world.directory)
            let first = try await scene.gateway(through: relay)
            let id = try await scene.approved(at: first)
            let kill: @Sendable () async -> Void = {
                first.process.signal(SIGKILL)
                _ = await first.process.exit()
            }
            switch moment {
            case .question: relay.lose("decide", .losesRequestAnd(kill))
            case .answer: relay.lose("decide", .losesReplyAnd(kill))
            case .report: relay.lose("outcome", .losesRequestAnd(kill))
            }
            let reply = try? await first.transfer(session: scene.session, transaction: id)
            #expect(await first.process.exit() == -SIGKILL)
            // The client has its answer before the engine hears of it.
            #expect(reply == nil || moment == .report && reply?.status == 201)
            #expect(scene.upstream.requests.count == (moment == .report ? 1 : 0))
            await relay.stop()

            let second = try await scene.gateway()
            let again = try await second.transfer(session: scene.session, transaction: id)
            switch moment {
            case .question: #expect(again.status == 201)
            case .answer, .report:
                // After ten minutes it is unknown.
                #expect(again.status == 409 && again.json["outcome"] == ["state": "forwarded"])
            }
            #expect(scene.upstream.requests.count == (moment == .answer ? 0 : 1))
        }
    }

    @Test("The server is killed before or after it takes: nothing is forwarded, and the next server knows which")
    func serverKilledUnheard() async throws {
        try await Self.run { scene in
            let relay = try await EngineRelay(scene.serve, directory: scene.world.directory)
            let gateway = try await scene.gateway(through: relay)
            let untaken = try await scene.approved(at: gateway)
            let taken = try await scene.approved(at: gateway)
            let kill: @Sendable () async -> Void = { try? await scene.killServer() }

            relay.lose("decide", .losesRequestAnd(kill))
            var reply = try await gateway.transfer(session: scene.session, transaction: untaken)
            #expect(reply.status == 503 && reply.json["forwarded"] == "no")
            let next = try await scene.startServer()
            #expect(try await gateway.transfer(session: scene.session, transaction: untaken).status == 201)
            #expect(scene.upstream.requests.count == 1)

            relay.lose(
                "decide",
                .losesReplyAnd {
                    next.process.signal(SIGKILL)
                    _ = await next.process.exit()
                })
            reply = try await gateway.transfer(session: scene.session, transaction: taken)
            #expect(reply.status == 503 && reply.json["code"] == "outcomeUnknown")
            try await scene.startServer()
            var again = try await gateway.transfer(session: scene.session, transaction: taken)
            // The report is repeated after a pause.
            while again.status == 503 || again.json["outcome"] == ["state": "forwarded"], !Task.isCancelled {
                await Task.yield()
                again = try await gateway.transfer(session: scene.session, transaction: taken)
            }
            #expect(again.status == 409 && again.json["outcome"] == ["state": "notForwarded"])
            #expect(scene.upstream.requests.count == 1)
            await relay.stop()
        }
    }

    @Test(
        "The server is killed before or after it hears the outcome: it is told again, and the next server has it once",
        arguments: [false, true])
    func serverKilledAtReport(hasHeard: Bool) async throws {
        try await Self.run { scene in
            let relay = try await EngineRelay(scene.serve, directory: scene.world.directory)
            let gateway = try await scene.gateway(through: relay)
            let id = try await scene.approved(at: gateway)
            let isKilled = Watched(false)
            let kill: @Sendable () async -> Void = {
                try? await scene.killServer()
                isKilled.update { $0 = true }
            }
            relay.lose("outcome", hasHeard ? .losesReplyAnd(kill) : .losesRequestAnd(kill))
            #expect(try await gateway.transfer(session: scene.session, transaction: id).status == 201)
            await isKilled.wait { $0 }
            #expect(try await scene.world.transactions()[id] == (hasHeard ? "TAKEN answered 201" : "TAKEN"))
            try await scene.startServer()
            // The report is repeated after a pause, since the gateway has heard nothing.
            await relay.calls.wait { calls in calls.count { $0 == "outcome" } >= 2 }
            try await scene.hearsOutcome(of: id, at: gateway)
            await relay.stop()
        }
    }

    @Test("200 requests at once with one transaction, at two gateways: the service gets one of them")
    func raced() async throws {
        try await Self.run { scene in
            let gateways = [try await scene.gateway(), try await scene.gateway()]
            let id = try await scene.approved(at: gateways[0])
            try await GatewayProcess.race(200, gateways, session: scene.session, transaction: id)
            #expect(scene.upstream.requests.count == 1)
        }
    }

    @Test("The server is killed while the service works: the client is answered, and the next server hears the outcome")
    func serverKilled() async throws {
        try await Self.run { scene in
            let gateway = try await scene.gateway()
            let id = try await scene.approved(at: gateway)
            scene.upstream.hold()
            let reply = Task { try await gateway.transfer(session: scene.session, transaction: id) }
            await scene.upstream.waitUntilHeld()
            try await scene.killServer()
            await scene.upstream.release()
            #expect(try await reply.value.status == 201)
            #expect(try await gateway.transfer(session: scene.session, transaction: id).status == 503)
            try await scene.startServer()
            try await scene.hearsOutcome(of: id, at: gateway)
        }
    }

    @Test("SIGTERM while the service works: the client is answered, and the server is told what became of the request")
    func terminated() async throws {
        try await Self.run { scene in
            let first = try await scene.gateway()
            let id = try await scene.approved(at: first)
            scene.upstream.hold()
            let reply = Task { try await first.transfer(session: scene.session, transaction: id) }
            await scene.upstream.waitUntilHeld()
            first.process.signal(SIGTERM)
            await scene.upstream.release()
            #expect(try await reply.value.status == 201)
            #expect(await first.process.exit() == 0, "\(first.process.errors)")
            scene.upstream.answer(with: TestUpstream.answering)
            let second = try await scene.gateway()
            let again = try await second.transfer(session: scene.session, transaction: id)
            #expect(again.status == 409 && again.json["outcome"] == ["state": "answered", "status": 201])
            #expect(scene.upstream.requests.count == 1)
        }
    }

    @Test("A file that makes no sense ends the start with exit status 78, and says what is wrong")
    func refused() async throws {
        try await ProcessWorld.run(upstream: 1) { world in
            let process = try WatchedProcess.start([
                try WatchedProcess.product("assent"), "serve", "--gateway-only", "--config",
                world.directory + "/assent.yaml",
            ])
            #expect(await process.exit() == 78)
            await process.waitUntilRead()
            #expect(process.errors.contains("belongs in the file of the server that decides"))
        }
    }
}
