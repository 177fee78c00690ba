import AssentCore
import AssentTesting
import AssentTokens
import AssentTransportNIO
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("Calls with proofs over connections that end")
struct ProvedConnectionTests {
    private static let issuer = "https://am.example.com/oauth2"

    /// An authorization server that gives bound tokens.
    private static func provider(_ exchange: InMemoryTransport.Exchange) -> HTTPReply {
        let url = exchange.request.url ?? ""
        if url.hasSuffix("/.well-known/openid-configuration") {
            return .json(
                200,
                [
                    "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                    "token_endpoint": .string("\(issuer)/access_token"),
                ])
        }
        if url.hasPrefix("\(issuer)/authorize") {
            let state = URLText.query(of: url)?[all: "state"].first ?? ""
            return HTTPReply(HTTPResponse(status: .found, headerFields: [.location: "app:/cb?code=c&state=\(state)"]))
        }
        return .json(200, ["access_token": "access-1", "expires_in": 600, "token_type": "DPoP"])
    }

    /// Runs `body` with calls to a server that ends a kept connection at its first call with a proof, as if it had died
    /// before its reply.
    private func run(
        drops: @escaping @Sendable (TestServer.Request) -> Bool = { $0.number == 1 },
        _ body: (TestServer, AuthenticatingTransport) async throws -> Void
    ) async throws {
        let server = try await TestServer.plaintext { request, peer in
            if drops(request) { peer.close() } else { peer.send(PoolTests.ok) }
        }
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        var configuration = try TokenConfiguration(
            issuer: Self.issuer, clientID: "app", redirectURI: "app:/cb", scopes: ["accounts"])
        configuration.dpop = .on(keys: SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys")))
        let clock = ManualClock()
        let tokens = TokenManager(
            configuration: configuration, transport: InMemoryTransport { Self.provider($0) },
            store: MemorySecretStore(clock: clock), clock: clock)
        try await tokens.install(Session(token: Secret("SESS")))
        let transport = try makePlaintextTransport()
        let origin = try Origin("http://localhost:\(server.port)")
        // A connection that is kept.
        _ = try await transport.text(.to(server.port, scheme: "http"))
        try await body(server, AuthenticatingTransport(tokens, resources: [origin: .accessToken], over: transport))
        await transport.shutdown()
        await server.stop()
    }

    /// The proofs that reached the server.
    private func proofs(_ server: TestServer) -> [String] {
        server.seen.requests.flatMap { $0.head.components(separatedBy: "\r\n") }.filter {
            $0.lowercased().hasPrefix("dpop: ")
        }
    }

    @Test("A GET is sent once more, with a proof of its own", arguments: [HTTPRequest.Method.get, .options])
    func safe(method: HTTPRequest.Method) async throws {
        try await run { server, calls in
            let reply = try await calls.send(.to(server.port, scheme: "http", method: method))
            #expect(reply.status == 200)
            #expect(server.seen.requests.count == 3 && server.seen.connections == 2)
            #expect(Set(proofs(server)).count == 2)
        }
    }

    @Test("A GET is sent again once, not for ever")
    func twice() async throws {
        try await run {
            $0.number > 0
        } _: { server, calls in
            await #expect(throws: HTTPTransportError(.connectionClosed, "")) {
                try await calls.send(.to(server.port, scheme: "http"))
            }
            #expect(server.seen.requests.count == 3 && Set(proofs(server)).count == 2)
        }
    }

    @Test(
        "What changes something, and what is sent once, is not sent again: the error says that it may have had an effect",
        arguments: [(HTTPRequest.Method.put, false), (.put, true), (.delete, false), (.post, true), (.get, true)])
    func once(method: HTTPRequest.Method, isSentOnce: Bool) async throws {
        try await run { server, calls in
            var call = HTTPCall.to(server.port, scheme: "http", method: method)
            if method == .put || method == .post { call.body = HTTPBody("pay") }
            call.isSentOnce = isSentOnce
            let error = await #expect(throws: HTTPTransportError.self) { try await calls.send(call) }
            #expect(error?.code == .connectionClosed && error?.mayHaveHadEffect == true)
            #expect(server.seen.requests.count == 2 && proofs(server).count == 1)
        }
    }
}
