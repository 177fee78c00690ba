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
        let serve: ServeProcess
        let upstream: TestUpstream
        let session: String
        let directory: String
        let client: HTTPClient
        private let gateways = Locked<[WatchedProcess]>([])

        init(serve: ServeProcess, upstream: TestUpstream, session: String, directory: String, client: HTTPClient) {
            self.serve = serve
            self.upstream = upstream
            self.session = session
            self.directory = directory
            self.client = client
        }

        func gateway() async throws -> GatewayProcess {
            let gateway = try await GatewayProcess.start(
                serve, directory: directory, upstream: upstream.port, client: client)
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
            let scene = Scene(
                serve: serve, upstream: upstream, session: session, directory: world.directory, client: client)
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
