import NIOCore
import Testing

@testable import AssentServer

@Suite("A server that waits for others for long")
struct PatientConfigurationTests {
    @Test("What its file says stays as it is, and what the file does not say takes longer")
    func patient() throws {
        let text = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081).replacing(
            "      home: /accounts\n", with: "      home: /accounts\n      timeouts: {headSeconds: 7}\n",
            maxReplacements: 1)
        var configuration = try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        configuration.bePatient(seconds: 600)
        let route = try #require(configuration.gateway?.routes.first { $0.name == "bank" })
        #expect(route.upstream.timeouts == .init(connect: 600, head: 7, silence: 600, total: nil))
        #expect(configuration.idleSeconds == 600 && configuration.outbound.timeout == .seconds(600))
        let (server, gateway) = configuration.bodies
        #expect(server.grace == .seconds(600) && server.total == .seconds(600))
        #expect(gateway.grace == .seconds(600) && gateway.total == nil)
    }

    @Test("A process of its own waits longer for services, and ends bodies as usual")
    func process() throws {
        let text = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        let usual = try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        var configuration = usual
        configuration.waitForOthers(seconds: 3600)
        let route = try #require(configuration.gateway?.routes.first { $0.name == "bank" })
        #expect(route.upstream.timeouts.head == 3600 && configuration.idleSeconds == 3600)
        #expect(configuration.bodies.server.grace == usual.bodies.server.grace)
        #expect(configuration.bodies.server.total == usual.bodies.server.total)
    }
}
