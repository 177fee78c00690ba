import AssentCore
import AssentEngine
import AssentJOSE
import AssentStore
import Crypto
import Foundation
import Logging
import StoreTesting

/// A token request of a client that proves itself by an assertion of its key (`private_key_jwt`), as the token endpoint
/// answers it, against the same by hand: one ES256 verification, one ES256 signature of as many bytes, and the same
/// three rows in one transaction. Assertions are made beforehand; TLS and HTTP are on neither side.
struct KeyedTokenBenchmark: Benchmark {
    static let name = "keyed-token"
    static let summary = "token requests with private_key_jwt against the same cryptography and SQL by hand"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let most = 8

    @concurrent
    func run() async throws -> [Comparison] {
        let path = try setting.workspace.directory("keyed-token") + "/assent.sqlite"
        let world = try await KeyedTokenWorld(.sqlite(path: path))
        let byHand = try await world.byHand()
        let file = try await HandMadeSQLiteRows(path: path)
        var comparisons = try await measure("SQLite", world, byHand, file)
        try file.close()
        try await world.close()
        #if PostgreSQL && os(Linux)
        let server = try await PostgreSQLServer.start()
        var configuration = try await server.offPool { try $0.makeDatabase() }
        configuration.connections = Self.most
        let node = try await KeyedTokenWorld(.postgresql(configuration))
        let lanes = try HandMadePostgreSQLRows(configuration, parallel: Self.most)
        comparisons += try await measure("PostgreSQL", node, try await node.byHand(), lanes)
        try await node.close()
        #endif
        return comparisons
    }

    private func measure(
        _ kind: String, _ world: KeyedTokenWorld, _ byHand: KeyedTokenByHand, _ rows: any HandMadeRows
    ) async throws -> [Comparison] {
        var comparisons: [Comparison] = []
        for parallel in [1, Self.most] {
            let way = parallel == 1 ? "one at a time" : "\(parallel) in parallel"
            var comparison = Comparison(
                benchmark: Self.name, title: "\(kind): token requests with a key / the same by hand, a second, \(way)",
                unit: "1/s", aim: .atLeast(0.7))
            let (rounds, each) = (setting.rounds(9, quick: 2), setting.rounds(400, quick: 40))
            let clock = ContinuousClock()
            try await comparison.inTurns(rounds: rounds) {
                let prepared = try world.prepare(each)
                return (
                    subject: {
                        let time = try await clock.measure { try await world.answer(prepared, parallel: parallel) }
                        return Double(each) / time.inSeconds
                    },
                    baseline: {
                        let time = try await clock.measure {
                            try await rows.run(byHand.requests(each), parallel: parallel)
                        }
                        return Double(each) / time.inSeconds
                    }
                )
            }
            comparisons.append(comparison)
        }
        return comparisons
    }
}

/// A provider with a client that has a key.
private struct KeyedTokenWorld: Sendable {
    private let database: any SQLDatabase
    private let provider: OAuthProvider
    private let key = P256.Signing.PrivateKey()

    private static let issuer = "https://localhost/am/oauth2/realms/root/realms/alpha"

    init(_ location: DatabaseLocation) async throws {
        let random = SystemRandom()
        database = try await location.open(clock: SystemClock())
        let context = EngineContext(
            database: database, clock: SystemClock(), random: random,
            masterKey: try MasterKey(Secret(bytes: random.bytes(MasterKey.byteCount))),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
        let point = Array(key.publicKey.rawRepresentation)
        let jwk: JSONValue = [
            "kty": "EC", "crv": "P-256", "x": .string(Base64URL.encode(Array(point.prefix(32)))),
            "y": .string(Base64URL.encode(Array(point.suffix(32)))),
        ]
        let keys = ClientKeys(.listed(try ClientKeys.listed(["keys": [jwk]], for: [.es256])), algorithms: [.es256])
        var client = OAuthClient(id: "office", kind: .keyed(keys), redirectURIs: [], scopes: ["accounts"])
        client.grantTypes = [.clientCredentials]
        client.defaultScopes = ["accounts"]
        provider = try OAuthProvider(
            context, keys: ServerKeys(context),
            configuration: OAuthProviderConfiguration(realm: "/alpha", issuer: Self.issuer, clients: [client]))
    }

    /// The forms of `count` requests, each with an assertion of its own.
    func prepare(_ count: Int) throws -> [OAuthParameters] {
        try (0..<count).map { _ in
            try OAuthParameters(
                FormItems([
                    "grant_type": "client_credentials", "client_assertion": try assertion(),
                    "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                ]))
        }
    }

    private func assertion() throws -> String {
        let now = SystemClock().epochSeconds
        let header: JSONValue = ["alg": "ES256"]
        let claims: JSONValue = [
            "iss": "office", "sub": "office", "aud": .string(Self.issuer), "jti": .string(SystemRandom().token()),
            "iat": .integer(now), "exp": .integer(now + 600),
        ]
        let input = [header, claims].map { Base64URL.encode(Array($0.serializedBytes())) }.joined(separator: ".")
        let signature = try key.signature(for: Data(input.utf8)).rawRepresentation
        return input + "." + Base64URL.encode(Array(signature))
    }

    /// Answers requests, `parallel` at a time.
    func answer(_ forms: [OAuthParameters], parallel: Int) async throws {
        try await Lanes.run(forms.count, parallel: parallel) { _ = try await answer(forms[$0]) }
    }

    private func answer(_ form: OAuthParameters) async throws -> IssuedTokens {
        try await provider.tokens(
            form, of: try await provider.clients.client(of: form, authorization: nil, at: .token), proof: nil,
            claimingProof: {})
    }

    /// The same by hand, with an assertion and an access token of this size.
    func byHand() async throws -> KeyedTokenByHand {
        guard let form = try prepare(1).first else { throw BenchFailure("no request") }
        let token = try await answer(form).accessToken.reveal()
        let assertion = try assertion()
        func signed(_ text: String) -> Data {
            Data(text.split(separator: ".").prefix(2).joined(separator: ".").utf8)
        }
        return try KeyedTokenByHand(verified: signed(assertion), signed: signed(token))
    }

    func close() async throws { try await database.close() }
}
