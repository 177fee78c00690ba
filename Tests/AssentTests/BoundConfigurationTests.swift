import Assent
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("The façade's switches for keys") struct BoundConfigurationTests {
    @Test("With a client key the token request has an assertion of this client for this issuer, and without one none")
    func client() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let keys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys"))
        let key = try await ClientKey.make(named: "app", at: keys)
        for isOn in [false, true] {
            let servers = Servers()
            let assent = try servers.assent {
                if isOn { $0.clientAuthentication = .privateKeyJWT(keys: keys, named: "app") }
            }
            try await assent.tokens.install(Session(token: Secret("SESS")))
            _ = try await assent.tokens.tokens()
            let form = try FormEncoding.parse(try #require(servers.sent("/access_token").first).body)
            #expect((form["client_assertion_type"] != nil) == isOn && form["client_id"] == "app")
            guard isOn else { continue }
            let message = try UnverifiedJWS.parse(try #require(form["client_assertion"]))
            let claims = try JWTValidation(
                issuer: "app", audience: assent.tokens.configuration.issuer, clock: servers.clock
            ).validate(try message.verified(with: key.keySet, algorithms: ClientKey.algorithms))
            #expect(claims.sub == "app")
        }
    }

    @Test("Off, nothing is proved; on, the token request is, and bearer tokens in answer reach no resource")
    func proved() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let field = try #require(HTTPField.Name("DPoP"))
        for isOn in [false, true] {
            let servers = Servers()
            let assent = try servers.assent {
                guard isOn else { return }
                $0.dpop = .on(keys: SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys")))
            }
            try await assent.tokens.install(Session(token: Secret("SESS")))
            #expect(assent.tokens.configuration.dpop.isOn == isOn)
            let call = ResourceRequest.get("https://api.bank.example/balance")
            if isOn {
                let error = await #expect(throws: TokenError.self) { try await assent.send(call) }
                #expect(error?.code == .unboundTokens)
                #expect(try await assent.tokens.storedTokens() == nil)
            } else {
                _ = try await assent.send(call)
            }
            let requests = servers.sent("/access_token")
            #expect(requests.count == 1)
            #expect(requests.allSatisfy { ($0.request.headerFields[field] != nil) == isOn })
            #expect(servers.sent("api.bank.example").isEmpty == isOn)
        }
    }
}
