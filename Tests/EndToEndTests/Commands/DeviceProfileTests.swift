import AssentCore
import AssentDemo
import AssentServer
import Testing

@testable import AssentCLI

@Suite("A device after its enrolment, without --config")
struct DeviceProfileTests {
    @Test("The file of the enrolment is kept; the texts on the way say what to type where, and until when to wait")
    func afterwards() async throws {
        try await DeviceTests.run(with: "      freshSeconds: 3600\n") { world, user, device in
            let inviting = try user.start(["device", "invite"], typing: true)
            let issuer = try await inviting.line(with: "the signing issuer:")
            let line = try await inviting.line(with: "assent device enroll")
            let code = try #require(line.split(separator: " ").last.map(String.init))
            #expect(code.wholeMatch(of: /[A-Z2-7]{5}(-[A-Z2-7]{5})*/) != nil, "\(code)")
            let enrolled = try await device.run("device", "enroll", code, "--config", device.clientFile)
            #expect(enrolled.status == 0, "\(enrolled.errors)")

            // The digits are not typed yet.
            let early = try await device.run("transactions", "list")
            #expect(early.status == 1 && early.errors.contains("[notActive]"), "\(early.errors)")
            #expect(early.errors.contains("digits") && !early.errors.contains("invite"), "\(early.errors)")
            func listed() async throws -> JSONValue {
                let list = try await device.run("device", "list")
                #expect(list.status == 0, "\(list.errors)")
                return try JSONValue.parse(list.output)
            }
            #expect(try await listed()["state"] == "UNCONFIRMED")
            let desk = DeviceDesk(world: world, user: user, device: device)
            _ = try await desk.confirm(inviting, shown: enrolled.output)
            let container = try await listed()
            #expect(container["state"] == "ACTIVE")
            let named = try #require(container["issuer"]?.string)
            #expect(issuer.hasSuffix(" \(named)") && named.hasPrefix(world.endpoints.server), "\(issuer)")

            let renamed = try await device.run("device", "rename", "At home", "--json")
            let told = try JSONValue.parse(renamed.output)
            #expect(told["container"] == container["container"] && told["name"] == "At home", "\(renamed.errors)")

            let renewed = try await device.run("device", "renew")
            let day = try #require(container["renewable"]?.string)
            #expect(renewed.status == 1 && renewed.errors.contains("before \(day)."), "\(renewed.errors)")

            let paying = try user.start([
                "request", "POST", "\(world.endpoints.gateway ?? "")/transfers", "--data",
                #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#,
            ])
            let shown = try await paying.errorLine(with: "Number:")
            let number = try #require(shown.wholeMatch(of: /Number: ([0-9]{2})/)?.output.1, "\(shown)")
            let approving = try device.start(["transactions", "approve", "--number", String(number)], typing: true)
            try approving.type(["1"])
            let approved = await approving.result()
            #expect(approved.status == 0 && approved.output.contains("Approved"), "\(approved.errors)")
            #expect(await paying.result().status == 0)
        }
    }
}
