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
        func startServer() async throws {
            try world.keepPorts(of: serve)
            try world.edit(GatewayProcess.admitting)
            _ = try await world.start()
        }

        func gateway() async throws -> GatewayProcess {
            let gateway = try await GatewayProcess.start(
                serve, directory: world.directory, upstream: upstream.port, client: client)
            gateways.withLock { $0.append(gateway.process) }
            return gateway
        }

        func approved(at gateway: GatewayProcess) async throws -> String {
            let id = try ServerFixture.transactionID(try await gateway.transfer(session: session))
            #expect(try await serve.approve(id, session: session).status == 200)
            return id
        }

        func stop() async { for process in gateways.withLock({ $0 }) { await process.stop() } }
    }

    private static func run(_ body: (Scene) async throws -> Void) async throws {
        let upstream = try await TestUpstream.start()
        let client = ServeProcess.makeClient()
        try await ProcessWorld.run(upstream: upstream.port) { world in
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
            var again = try await gateway.transfer(session: scene.session, transaction: id)
            // The report is repeated after a pause.
            while again.status == 503 || again.json["outcome"] == ["state": "forwarded"], !Task.isCancelled {
                await Task.yield()
                again = try await gateway.transfer(session: scene.session, transaction: id)
            }
            #expect(again.status == 409 && again.json["outcome"] == ["state": "answered", "status": 201])
            #expect(scene.upstream.requests.count == 1)
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
