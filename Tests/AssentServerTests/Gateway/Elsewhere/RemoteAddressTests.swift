import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Where a request to a gateway elsewhere comes from")
struct RemoteAddressTests {
    private static let field = "X-Forwarded-For"

    private static let proxies = ["127.0.0.1", "::1"].compactMap(TrustedProxies.Network.init)

    private static func behindProxy(_ configuration: inout GatewayServerConfiguration) {
        configuration.trustedProxies.networks = proxies
    }

    /// The address that the engine was told in the latest question.
    private func told(_ alone: GatewayAlone) throws -> String? {
        let question = try #require(alone.relay.requests("decide").last)
        return try JSONValue.parse(question.body)["address"]?.string
    }

    @Test("What a client writes into a field is not believed, neither here nor by the engine")
    func forged() async throws {
        try await GatewayAlone.run { alone in
            let mine = ServerFixture.session(try await alone.engine.session())
            for forged in [
                [(Self.field, "198.51.100.7")], [("Forwarded", "for=198.51.100.7")], [("X-Real-IP", "198.51.100.7")],
                [(Self.field, Array(repeating: "198.51.100.7", count: 100).joined(separator: ", "))],
            ] {
                #expect(try await alone.get("/inside", mine + forged).status == 200, "\(forged)")
                #expect(try told(alone) == "127.0.0.1")
                #expect(try await alone.get("/outside", mine + forged).status == 403, "\(forged)")
            }
        }
    }

    @Test("Conditions of the engine are about the client behind the gateway's own trusted proxy")
    func trusted() async throws {
        try await GatewayAlone.run(configuring: Self.behindProxy) { alone in
            let mine = ServerFixture.session(try await alone.engine.session())
            for (value, address) in [
                ("127.5.5.5", "127.5.5.5"), ("198.51.100.7, 127.5.5.5:4711", "127.5.5.5"),
                ("198.51.100.7", "198.51.100.7"), ("127.5.5.5, 198.51.100.7", "198.51.100.7"),
                // What does not say it leaves it at the proxy.
                ("bank.example", "127.0.0.1"), ("198.51.100.7, unknown", "127.0.0.1"),
            ] {
                let isInside = address.hasPrefix("127.")
                let fields = mine + [(Self.field, value)]
                #expect(try await alone.get("/inside", fields).status == (isInside ? 200 : 403), "\(value)")
                #expect(try told(alone) == address, "\(value)")
                #expect(try await alone.get("/outside", fields).status == (isInside ? 403 : 200), "\(value)")
            }
        }
    }

    @Test("A group that is not believed about addresses meets no condition on them, and not its opposite either")
    func notBelieved() async throws {
        let editing = { (text: String) in text.replacing("believesAddress: true", with: "believesAddress: false") }
        try await ServerFixture.run(editing: editing) { engine in
            try await GatewayAlone.run(at: engine, configuring: Self.behindProxy) { alone in
                let mine = ServerFixture.session(try await engine.session())
                for value in ["127.5.5.5", "198.51.100.7"] {
                    let fields = mine + [(Self.field, value)]
                    for path in ["/inside", "/outside"] {
                        #expect(try await alone.get(path, fields).status == 403, "\(path), \(value)")
                    }
                    #expect(try await alone.get("/accounts", fields).status == 200)
                }
            }
        }
    }

    @Test("A decision that is kept for one address lets nobody in from another one")
    func kept() async throws {
        let editing = { (text: String) in
            text.replacing(
                #"resources: ["https://localhost:*/inside"]"#,
                with: #"resources: ["https://localhost:*/inside", "https://localhost:*/kept/inside"]"#)
        }
        let path = { (text: String) in text.replacing("path: /files/kept", with: "path: /kept") }
        try await ServerFixture.run(editing: editing) { engine in
            try await GatewayAlone.run(at: engine, editing: path, configuring: Self.behindProxy) { alone in
                let mine = ServerFixture.session(try await engine.session())
                func get(from address: String) async throws -> (status: Int, questions: Int) {
                    let before = alone.relay.count("decide")
                    let reply = try await alone.get("/kept/inside", mine + [(Self.field, address)])
                    return (reply.status, alone.relay.count("decide") - before)
                }
                for (address, status, questions) in [
                    ("127.5.5.5", 200, 1), ("127.5.5.5", 200, 0), ("198.51.100.7", 403, 1), ("198.51.100.7", 403, 1),
                    ("127.5.5.6", 200, 1), ("127.5.5.5", 200, 0),
                ] {
                    let found = try await get(from: address)
                    #expect(found.status == status && found.questions == questions, "\(address): \(found)")
                }
            }
        }
    }

    @Test("From a usual network nobody is asked, and from another one once, by the address that the gateway tells")
    func usualNetwork() async throws {
        try await UsualNetworkTests.run { engine in
            try await GatewayAlone.run(at: engine, configuring: Self.behindProxy) { alone in
                let password = try engine.account("ana").password.reveal()
                let signedIn = try await engine.runJourney(
                    [("authIndexType", "service"), ("authIndexValue", "Quick")], [(Self.field, "192.0.2.7")]
                ) { type in
                    switch type {
                    case "NameCallback": "ana"
                    case "PasswordCallback": .string(password)
                    default: nil
                    }
                }
                let session = try #require(signedIn.json["tokenId"]?.string)
                let mine = ServerFixture.session(session)
                func pay(from address: String, id: String? = nil) async throws -> Answer {
                    try await alone.post("/usual", mine + [(Self.field, address)], transaction: id)
                }
                #expect(try await pay(from: "192.0.2.200").status == 201)
                let refused = try await pay(from: "198.51.100.1")
                #expect(refused.status == 401)
                let id = try ServerFixture.transactionID(refused)
                let approved = try await engine.runJourney(
                    [("authIndexType", "transaction"), ("authIndexValue", id)],
                    mine + [(Self.field, "198.51.100.1")]
                ) { $0 == "ConfirmationCallback" ? 0 : nil }
                #expect(approved.json["tokenId"]?.string == session)
                // What was approved happens once, and the next request is not asked about.
                #expect(try await pay(from: "198.51.100.1", id: id).status == 201)
                #expect(try await pay(from: "198.51.100.1", id: id).status == 409)
                #expect(try await pay(from: "198.51.100.1").status == 201)
                #expect(try await pay(from: "203.0.113.1").status == 401)
                #expect(alone.upstream.requests.count == 3)
            }
        }
    }
}
