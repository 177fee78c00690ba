import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("The health of a gateway elsewhere")
struct GatewayHealthTests {
    /// Lets it be asked, on a port that is free.
    private static func editing(_ text: String) -> String {
        text.replacing("gateway:\n", with: "listen: {healthPort: 0}\ngateway:\n", maxReplacements: 1)
    }

    @Test("Its own port has two paths, for anyone and under any name; the same paths of the gateway are a service's")
    func paths() async throws {
        try await GatewayAlone.run(editing: Self.editing) { alone in
            let lives = try await alone.health("/healthz")
            #expect(lives.status == 200 && lives.json["status"]?.string == "ok")
            let ready = try await alone.health("/readyz")
            #expect(ready.status == 200 && ready.json["status"]?.string == "ready" && ready.json["warning"] == nil)
            for path in ["/", "/accounts", "/open", "/healthz/", "/readyz/a"] {
                #expect(try await alone.health(path).status == 404, "\(path)")
            }
            let found = try await alone.gateway.healthPort
            let port = try #require(found)
            let connection = try await RawConnection.open(port: port)
            try await connection.send("GET /readyz HTTP/1.1\r\nHost: 10.1.2.3\r\nConnection: close\r\n\r\n")
            #expect(await connection.untilClosed().hasPrefix("HTTP/1.1 200 "))
            for path in ["/healthz", "/readyz"] {
                #expect(try await alone.get(path, []).status == 401, "\(path)")
            }
            #expect(alone.upstream.requests.isEmpty)
        }
    }

    @Test("It stays ready while the engine is away, with a warning until a question is decided again")
    func away() async throws {
        try await GatewayAlone.run(editing: Self.editing) { alone in
            let mine = ServerFixture.session(try await alone.engine.session())
            alone.relay.lead(to: nil)
            #expect(try await alone.get("/accounts", mine).status == 503)
            let warned = try await alone.health("/readyz")
            #expect(warned.status == 200 && warned.json["warning"]?.string == "engine")
            alone.relay.lead(to: alone.engine)
            // The gateway's own sign-in has failed, and there is a pause before the next.
            alone.engine.clock.advance(by: 3)
            #expect(try await alone.get("/accounts", mine).status == 200)
            #expect(try await alone.health("/readyz").json["warning"] == nil)
        }
    }

    @Test("Without the port in its file nobody can ask")
    func absent() async throws {
        try await GatewayAlone.run { alone in
            let port = try await alone.gateway.healthPort
            #expect(port == nil)
        }
    }
}
