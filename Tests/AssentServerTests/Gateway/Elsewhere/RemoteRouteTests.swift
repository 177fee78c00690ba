import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("Actions and rewritten paths of a gateway elsewhere")
struct RemoteRouteTests {
    private static let body = #"{"amount":"200.00"}"#

    /// The gateway's file whose first route says which action a request asks for.
    private static func withEntry(_ text: String) -> String {
        text.replacing(
            "      maxBodyBytes: 4096\n",
            with: "      maxBodyBytes: 4096\n"
                + "      actions: [{methods: [POST, PUT], path: /wires, action: transfer}]\n",
            maxReplacements: 1)
    }

    @Test("What an action asks for is approved, bound to the method and spent once; without the entry nobody has it")
    func actions() async throws {
        try await ServerFixture.run(editing: { RouteActionsTests.edited($0, nil) }) { engine in
            let session = try await engine.session()
            let mine = ServerFixture.session(session)
            try await GatewayAlone.run(at: engine, editing: Self.withEntry) { alone in
                let id = try await alone.approved("/wires?a=1", body: Self.body, session: session)
                let approved = ServerFixture.jsonFields + mine + [("X-TxID", id)]
                let bytes = Array(Self.body.utf8)
                #expect(try await alone.send("PUT", "/wires?a=1", approved, body: bytes).status == 403)
                #expect(try await alone.send("DELETE", "/wires?a=1", approved, body: bytes).status == 403)
                #expect(alone.upstream.requests.isEmpty)
                #expect(try await alone.send("POST", "/wires?a=1", approved, body: bytes).status == 201)
                #expect(try await alone.send("POST", "/wires?a=1", approved, body: bytes).status == 409)
                #expect(alone.upstream.requests.map(\.line) == ["POST /wires?a=1 HTTP/1.1"])
            }
            try await GatewayAlone.run(at: engine) { alone in
                let reply = try await alone.post("/wires", mine, body: Self.body)
                #expect(reply.status == 403)
                #expect(alone.upstream.requests.isEmpty)
            }
        }
    }

    @Test("The engine decides on the path that the caller used, and the service gets the other one")
    func rewritten() async throws {
        let editing = { (text: String) in
            text.replacing(
                "      cacheSeconds: 30\n", with: "      rewrite: /internal\n", maxReplacements: 1)
        }
        try await GatewayAlone.run(editing: editing) { alone in
            let mine = ServerFixture.session(try await alone.engine.session())
            #expect(try await alone.get("/files/kept/a?b=1", mine).status == 200)
            #expect(alone.upstream.requests.map(\.line) == ["GET /internal/a?b=1 HTTP/1.1"])
            let question = try JSONValue.parse(try #require(alone.relay.requests("decide").last).body)
            #expect(question["resource"]?.string?.hasSuffix(":9543/files/kept/a?b=1") == true, "\(question)")
            // A path of the service is nobody's at the gateway, and none climbs to it.
            for (target, status) in [
                ("/internal/a", 403), ("/files/kept/../../internal/a", 400), ("/files/kept/%2e%2e/a", 400),
                ("/files/kept/..%2fa", 400),
            ] {
                let connection = try await RawConnection.open(port: alone.port)
                let lines = ["GET \(target) HTTP/1.1", "Host: localhost", "Connection: close"]
                let fields = lines + mine.map { "\($0.0): \($0.1)" }
                try await connection.send(fields.joined(separator: "\r\n") + "\r\n\r\n")
                #expect(await connection.untilClosed().hasPrefix("HTTP/1.1 \(status) "), "\(target)")
            }
            #expect(alone.upstream.requests.count == 1)
        }
    }
}
