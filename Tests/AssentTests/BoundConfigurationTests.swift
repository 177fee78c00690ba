import Assent
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("The façade's switch for bound tokens") struct BoundConfigurationTests {
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
            let call = ResourceCall.get("https://api.bank.example/balance")
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
