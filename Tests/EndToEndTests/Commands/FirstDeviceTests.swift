import AssentPeers
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("The program of the article about a first device")
struct FirstDeviceTests {
    @Test("It enrols by the digits that it shows, and a payment that is accepted there with its number is made")
    func signs() async throws {
        try await DeviceTests.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            let (inviting, code) = try await desk.invite()
            let values = DemoCommand.firstDevice(world.endpoints, in: device.home + "/first-device")
            let running = try Program.Running(
                Program.Running.limits + [BuiltProgram.beside("FirstDevice").path] + values + [code],
                typing: true, environment: ["HOME": device.home, "PATH": "/usr/bin:/bin"])
            let shown = try await running.line(with: "Type these digits")
            _ = try await desk.confirm(inviting, shown: shown)
            _ = try await running.line(with: "This device may approve")
            let (paying, number) = try await desk.pay()
            let answers = try await running.line(with: "Answer: ")
            #expect(answers.contains("accept"))
            try running.type(["accept", number])
            let result = await running.result()
            #expect(result.status == 0, "\(result)")
            for text in ["200.00 EUR", "Bob", "The number that is shown", "The server has signed"] {
                #expect(result.output.contains(text), "\(text)")
            }
            let paid = await paying.result()
            #expect(paid.status == 0 && paid.output.contains(#""amount":"200.00""#), "\(paid.errors)")
        }
    }
}
