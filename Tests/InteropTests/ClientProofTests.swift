import AssentCore
import AssentJOSE
import AssentPeers
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

/// What our client says of itself, as others read it: Authlib's server side with joserfc, and jwcrypto.
@Suite("The client's assertions and proofs, read by Python")
struct ClientProofTests {
    private static let issuer = "https://am.bank.example/am/oauth2"
    private static let nonce = "server-nonce"

    /// An authorization server that gives bound tokens for whatever comes, after it has asked for its nonce once.
    private static func provider() -> InMemoryTransport {
        let given = Locked(0)
        return InMemoryTransport { exchange in
            let url = exchange.request.url ?? ""
            switch URLText.withoutQuery(url).dropFirst(issuer.count) {
            case "/.well-known/openid-configuration":
                return .json(
                    200,
                    [
                        "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                        "token_endpoint": .string("\(issuer)/access_token"),
                        "revocation_endpoint": .string("\(issuer)/token/revoke"),
                    ])
            case "/authorize":
                let state = URLText.query(of: url)?[all: "state"].first ?? ""
                let location = "https://bank.example/callback?code=c&state=\(state)"
                return HTTPReply(HTTPResponse(status: .found, headerFields: [.location: location]))
            case "/access_token":
                let fields: HTTPFields = [try nonceField: nonce]
                guard try proof(of: exchange).contains("\"nonce\"") else {
                    return .json(400, ["error": "use_dpop_nonce"], headers: fields)
                }
                let number = given.withLock { given in
                    given += 1
                    return given
                }
                return .json(
                    200,
                    [
                        "access_token": .string("access-\(number)"), "refresh_token": .string("refresh-\(number)"),
                        "token_type": "DPoP", "expires_in": 600,
                    ], headers: fields)
            default: return HTTPReply(HTTPResponse(status: .ok))
            }
        }
    }

    private static var nonceField: HTTPField.Name { get throws { try #require(HTTPField.Name("DPoP-Nonce")) } }

    private static func field(of exchange: InMemoryTransport.Exchange) throws -> String? {
        exchange.request.headerFields[try #require(HTTPField.Name("DPoP"))]
    }

    /// The claims of a request's proof as text.
    private static func proof(of exchange: InMemoryTransport.Exchange) throws -> String {
        let message = try UnverifiedJWS.parse(try #require(try field(of: exchange)))
        return String(decoding: message.payload, as: UTF8.self)
    }

    @Test("Authlib takes each assertion once and none that was changed; jwcrypto verifies assertions and proofs")
    func python() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let keys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys"))
        let key = try await ClientKey.make(named: "bank", at: keys)
        var configuration = try TokenConfiguration(
            issuer: Self.issuer, clientID: "bank-app", redirectURI: "https://bank.example/callback",
            scopes: ["accounts"])
        configuration.dpop = .on(keys: keys)
        configuration.clientAuthentication = .privateKeyJWT(keys: keys, named: "bank")
        let transport = Self.provider()
        let manager = TokenManager(configuration: configuration, transport: transport, store: MemorySecretStore())
        try await manager.install(Session(token: Secret("S")))
        let tokens = try await manager.tokens()
        _ = try await manager.refresh()
        #expect(await manager.signOut().isComplete)

        let sent = transport.exchanges.filter { $0.request.method == .post }
        let forms = try sent.map { exchange in
            let items = try FormEncoding.parse(exchange.body).items
            return JSONValue.object(JSONObject(items.map { .init(name: $0.name, value: .string($0.value)) }))
        }
        let proofs = try sent.compactMap { try Self.field(of: $0) }
        // The code went out twice, for the nonce; then a refresh and two revocations, which need no proof.
        #expect(forms.count == 5 && proofs.count == 3)
        let seen = try await Peer.run(
            "client_proofs.py",
            [
                "issuer": .string(Self.issuer), "client_id": "bank-app", "jwks": key.keySet.json,
                "forms": .array(forms), "proofs": .array(proofs.map { .string($0) }),
            ])
        try check(seen, key, tokens)
    }

    @Test("Our server takes the key set that the SDK made, and the client by that key alone", arguments: [false, true])
    func ourServer(isBound: Bool) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let keys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys"))
        let key = try await ClientKey.make(named: "bank", at: keys)
        let client = """
            keyed:
              jwks: \(key.keySet.json.serialized())
              redirectURIs: ["http://127.0.0.1/cb"]
              scopes: [openid, profile]
            """
        try await OurServer.run(clients: client) { server in
            var configuration = try server.configuration(client: "keyed")
            configuration.clientAuthentication = .privateKeyJWT(keys: keys, named: "bank")
            if isBound { configuration.dpop = .on(keys: keys) }
            let manager = try await server.manager(configuration)
            let first = try await manager.tokens()
            #expect(first.isBound == isBound && first.refreshToken != nil)
            #expect(try await manager.refresh().accessToken != first.accessToken)
            #expect(try await manager.userInfo().sub == first.idToken?.subject)
            #expect(await manager.signOut().isComplete)

            // The thief knows the client's id, and has a key of the same name.
            let other = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "other"))
            _ = try await ClientKey.make(named: "bank", at: other)
            configuration.clientAuthentication = .privateKeyJWT(keys: other, named: "bank")
            let thief = try await server.manager(configuration)
            let error = await #expect(throws: TokenError.self) { try await thief.tokens() }
            #expect(error?.oauthError == "invalid_client" && error?.suggestion?.contains("client key bank") == true)
            configuration.clientAuthentication = .none
            let anonymous = try await server.manager(configuration)
            let refused = await #expect(throws: TokenError.self) { try await anonymous.tokens() }
            #expect(refused?.oauthError == "invalid_client")
        }
    }

    private func check(_ seen: JSONValue, _ key: ClientKey, _ tokens: TokenSet) throws {
        #expect(seen["accepted"]?.strings == Array(repeating: "ok", count: 5))
        #expect(seen["repeated"]?.strings == Array(repeating: "JWT ID is used before.", count: 5))
        #expect(seen["flipped"]?.strings?.count == 5 && seen["flipped"]?.strings?.contains("ok") == false)
        let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        #expect(seen["types"]?.strings == Array(repeating: type, count: 5))
        #expect(seen["private"] == false && seen["thumbprints"]?.strings == [key.publicKey.thumbprint])
        let assertions = try #require(seen["assertions"]?.array)
        #expect(assertions.count == 5)
        for assertion in assertions {
            #expect(assertion["header"]?["kid"]?.string == key.publicKey.thumbprint)
            #expect(assertion["claims"]?["aud"]?.string == Self.issuer && assertion["claims"]?["iss"] == "bank-app")
        }
        let proofs = try #require(seen["proofs"]?.array)
        #expect(proofs.count == 3 && Set(proofs.map { $0["claims"]?["jti"]?.string }).count == 3)
        for proof in proofs {
            #expect(proof["header"]?["typ"] == "dpop+jwt" && proof["thumbprint"]?.string == tokens.keyThumbprint)
            #expect(proof["claims"]?["htm"] == "POST")
            #expect(proof["claims"]?["htu"]?.string == "\(Self.issuer)/access_token")
        }
        #expect(proofs.map { $0["claims"]?["nonce"]?.string } == [nil, Self.nonce, Self.nonce])
        #expect(tokens.keyThumbprint != key.publicKey.thumbprint)
    }
}
