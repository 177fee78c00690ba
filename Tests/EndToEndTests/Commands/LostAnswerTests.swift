import AssentCore
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("An answer on the device whose reply is lost on the way")
struct LostAnswerTests {
    @Test("The command says what became of it: an approval with status 0, a wrong number with status 2")
    func lost() async throws {
        let server = try ReservedPort()
        let relay = try await Relay.start { server.port }
        let clients = "    clients:\n"
        try await DeviceTests.run(
            editing: { $0.replacing(clients, with: clients + DeviceChangeTests.shop) },
            configuring: {
                $0.port = server.port
                $0.publicURL = "https://localhost:\(relay.port)/am"
            }
        ) { world, user, device in
            try await DeviceDesk(world: world, user: user, device: device).enrol()
            /// The next bytes that come from the server are those that would answer the decision.
            func answer(_ number: (String) -> String) async throws -> Program.Result {
                let page = try await DeviceChangeTests.page(world)
                let scanning = try device.start(
                    ["device", "scan", page.code, "--config", device.clientFile], typing: true)
                _ = try await scanning.line(with: "Example Shop asks")
                relay.cutNextReply()
                try scanning.type(["Approve", number(page.number)])
                return await scanning.result()
            }
            let approved = try await answer { $0 }
            #expect(approved.status == 0 && approved.output.contains("Approved: accept"), "\(approved)")
            let wrong = try await answer { $0 == "10" ? "11" : "10" }
            // On a connection of its own the decision itself may have been lost: then this is its first answer.
            let isSaid = ["[tx_failed]", "[match_wrong]"].contains { wrong.errors.contains($0) }
            #expect(wrong.status == 2 && isSaid, "\(wrong)")
            let later = try await device.run("transactions", "list", "--config", device.clientFile)
            #expect(later.status == 0 && later.errors.isEmpty, "\(later.errors)")
        }
        try await relay.stop()
    }
}
