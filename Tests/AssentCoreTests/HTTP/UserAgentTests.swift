import AssentCore
import AssentTesting
import HTTPTypes
import Testing

@Suite("User-Agent") struct UserAgentTests {
    @Test("It names app, library and platform, and has nothing in it that a field cannot have")
    func value() {
        let library = "Assent/\(AssentVersion.current)"
        let rows: [(String, String?, String)] = [
            ("pay", "3.2.0", "pay/3.2.0 \(library) (linux)"), ("pay", nil, "pay \(library) (linux)"),
            ("pay app/x", "3 (beta)\r\nX: y", "pay-app-x/3--beta---X--y \(library) (linux)"),
            ("", "", "-/- \(library) (linux)"), ("ä", "3", "--/3 \(library) (linux)"),
            (String(repeating: "a", count: 1000), nil, "\(String(repeating: "a", count: 64)) \(library) (linux)"),
        ]
        for (app, version, expected) in rows {
            #expect(UserAgentMiddleware(app: app, version: version, platform: "linux").value == expected)
        }
    }

    @Test("It is added where none is, and what is there stays")
    func layer() async throws {
        let seen = Locked<[String?]>([])
        let transport = InMemoryTransport { exchange in
            seen.withLock { $0.append(exchange.request.headerFields[.userAgent]) }
            return .json(200, [:])
        }
        let layer = UserAgentMiddleware(app: "pay", version: "3.2.0", platform: "linux")
        let pipeline = HTTPPipeline(transport, layers: [layer])
        for own in [nil, "BankApp/7"] {
            var call = try HTTPCall(.get, url: "https://api.bank.example/x")
            call.request.headerFields[.userAgent] = own
            _ = try await pipeline.send(call)
        }
        #expect(seen.withLock { $0 } == [layer.value, "BankApp/7"])
    }
}
