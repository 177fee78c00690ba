#if os(Linux)
import Foundation
import StoreTesting
import Testing

@Suite("Bodies that never end", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct DrippingBodyTests {
    @Test("A thousand from one address, with few descriptors: others sign in and pay, and each body is ended")
    func descriptors() async throws {
        try await ProcessWorld.run { world in
            let serve = try await world.start(prefix: ["/bin/sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"])
            let server = try #require(URLComponents(string: serve.server)?.port)
            let gateway = try #require(URLComponents(string: serve.gateway ?? "")?.port)
            var held: [RawConnection] = []
            for number in 0..<1000 {
                let (port, path) =
                    number.isMultiple(of: 2)
                    ? (server, "/am/json/realms/root/realms/alpha/authenticate") : (gateway, "/transfers")
                let connection = try await RawConnection.open(port: port, from: "127.0.0.2")
                try await connection.send(
                    "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: 1000\r\n\r\n{")
                connection.drip()
                held.append(connection)
            }
            await serve.process.waitUntilSaid("127.0.0.2")
            let session = try await serve.signIn("ana", password: #require(serve.password))
            let refused = try await serve.transfer(to: "Bob", session: session)
            let id = try ServerFixture.transactionID(refused)
            #expect(try await serve.approve(id, session: session).status == 200)
            #expect(try await serve.transfer(to: "Bob", session: session, transaction: id).status == 201)
            for connection in held { _ = await connection.untilClosed() }
            // Its places are free again.
            let later = try await RawConnection.open(port: server, from: "127.0.0.2")
            try await later.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            #expect(await later.untilClosed().hasPrefix("HTTP/1.1 200 "))
            serve.process.signal(SIGTERM)
            #expect(await serve.process.exit() == 0, "\(serve.process.errors)")
        }
    }
}
#endif
