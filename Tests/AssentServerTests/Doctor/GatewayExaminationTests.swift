import AssentConfiguration
import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("What doctor says of a gateway elsewhere")
struct GatewayExaminationTests {
    @Test("An engine that is away, or does not know the client, is told with what an operator does about it")
    func engine() async throws {
        try await ServerFixture.run { engine in
            func told(_ name: String, url: String, secret: String) async throws -> [Diagnosis] {
                let place = "\(engine.directory)/\(name)"
                try PrivateFile.create("\(place)-secret", Array(secret.utf8))
                let text = GatewayAlone.yaml(
                    engine: url, publicURL: engine.endpoints.server, directory: engine.directory, upstream: 9080
                ).replacing("edge-secret", with: "\(name)-secret")
                var configuration = try GatewayServerConfiguration.parse(text, file: "\(place).yaml")
                configuration.bePatient(seconds: 600)
                return await GatewayExamination.engine(configuration, clock: engine.clock)
            }
            let right = FixtureConfiguration.clientSecret
            let known = try await told("known", url: engine.endpoints.server, secret: right)
            #expect(known.contains { $0.verdict == .fine && $0.text.contains("knows the client edge") }, "\(known)")

            let another = String(repeating: "x", count: 40)
            let stranger = try await told("stranger", url: engine.endpoints.server, secret: another)
            let unknown = stranger.filter { $0.verdict == .problem }.map(\.text)
            #expect(unknown.count == 1 && unknown.first?.contains("Compare clientID") == true, "\(stranger)")
            #expect(unknown.first?.contains("journey") == false && unknown.first?.contains(another) == false)

            let away = try await told("away", url: "https://localhost:\(engine.refusing.port)/am", secret: right)
            let silent = away.filter { $0.verdict == .problem }.map(\.text)
            #expect(silent.count == 1 && silent.first?.contains("Start the server") == true, "\(away)")
            #expect(silent.first?.contains("Carry nothing out") == false)
        }
    }
}
