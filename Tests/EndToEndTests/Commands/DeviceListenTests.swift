import AssentCore
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent device listen")
struct DeviceListenTests {
    /// Begins to listen at an enrolled device.
    private static func listen(_ desk: DeviceDesk) async throws -> Program.Running {
        let listening = try desk.device.start(
            ["device", "listen", "--config", desk.device.clientFile], typing: true)
        _ = try await listening.line(with: "Waiting")
        return listening
    }

    @Test("What was answered elsewhere and a wrong number are said, a mistyped one is asked again, and it goes on")
    func goesOn() async throws {
        try await DeviceTests.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            let listening = try await Self.listen(desk)

            let first = try await desk.pay("1.00")
            _ = try await listening.line(with: "1.00 EUR")
            let declined = try await desk.onDevice("transactions", "decline")
            #expect(declined.status == 0, "\(declined.errors)")
            try listening.type(["Approve", first.number])
            _ = try await listening.errorLine(with: "[already_decided]")
            #expect(await first.paying.result().status == 2)

            let second = try await desk.pay("2.00")
            _ = try await listening.line(with: "2.00 EUR")
            let left = try await listening.line(with: "Open for")
            #expect(left.wholeMatch(of: /Open for [0-9]+ more seconds?\./) != nil, "\(left)")
            try listening.type(["Approve", second.number == "10" ? "11" : "10"])
            _ = try await listening.errorLine(with: "[match_wrong]")
            #expect(await second.paying.result().status == 2)

            let third = try await desk.pay("3.00")
            _ = try await listening.line(with: "3.00 EUR")
            try listening.type(["Approve", "x"])
            _ = try await listening.errorLine(with: "[invalidArgument]")
            _ = try await listening.line(with: "3.00 EUR")
            try listening.type(["Approve", third.number])
            _ = try await listening.line(with: "Signed and sent: accept")
            let paid = await third.paying.result()
            #expect(paid.status == 0, "\(paid.errors)")
            listening.interrupt()
            let said = await listening.result().errors
            #expect(said.components(separatedBy: "[match_wrong]").count == 2, "\(said)")
            // What was said is not said again.
            let later = try await desk.onDevice("transactions", "list")
            #expect(later.status == 0 && later.errors.isEmpty, "\(later.errors)")
        }
    }

    @Test("It waits for a server that is started again, and hears afterwards what it has heard before")
    func restart() async throws {
        let directory = NSTemporaryDirectory() + "/assent-restart-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let port = try ReservedPort()
        try await DeviceTests.run(
            with: "      freshSeconds: 3600\n",
            configuring: {
                $0.port = port.port
                $0.publicURL = "https://localhost:\(port.port)/am"
                $0.dataDirectory = directory + "/server"
            }
        ) { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            let listening = try await Self.listen(desk)
            await world.stop()
            _ = try await listening.errorLine(with: "as soon as the server answers")

            let server = try await IdentityServer(
                configuration: world.configuration, clock: world.clock, logger: CollectingLog().logger)
            let running = Task { try await server.run() }
            defer { running.cancel() }
            // Throws where nothing would answer.
            _ = try await server.endpoints
            _ = try await listening.errorLine(with: "The server answers again")
            let client = try String(contentsOfFile: device.clientFile, encoding: .utf8)
            let other = try Program(below: device.home + "/other", client: client)
            try await DeviceDesk(world: world, user: user, device: other).enrol()
            _ = try await listening.errorLine(with: "was enrolled for you")
            listening.interrupt()
            _ = await listening.result()
            running.cancel()
            _ = try? await running.value
        }
    }
}
