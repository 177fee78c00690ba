import AssentCore
import AssentOTP
import AssentPeers
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("The app that pays by a URLSession of its own")
struct URLSessionExampleTests {
    private static let program = "AssentExampleURLSession"

    private func start(_ values: [String], _ typist: Typist) throws -> Program.Running {
        try Program.Running(
            Program.Running.limits + [BuiltProgram.beside(Self.program).path] + values, typing: true,
            environment: ["HOME": typist.program.home, "PATH": "/usr/bin:/bin"])
    }

    @Test("It signs in, reads the balance, shows what is paid, and pays once")
    func pays() async throws {
        try await Typist.run { typist in
            let running = try start(DemoCommand.firstCall(typist.world.endpoints), typist)
            try running.type([typist.world.account.username, typist.world.account.password.reveal(), try typist.code()])
            #expect(try await running.line(with: "balance").contains("The balance is 1000.00."))
            try running.type(["yes", try typist.code()])
            let result = await running.result()
            #expect(result.status == 0 && result.output.contains("Paid."), "\(result)")
            for text in ["Amount: 200.00 EUR", "To: Bob"] { #expect(result.output.contains(text)) }
            #expect(try await typist.login().status == 0)
            #expect(try await typist.balance() == "800.00")
        }
    }

    @Test("A user with a device is told once which number to type there, and their approval there pays")
    func device() async throws {
        try await DeviceTests.run { world, user, device in
            try await DeviceDesk(world: world, user: user, device: device).pays(by: Self.program)
        }
    }

    @Test("What the user does not approve is not paid: the app gets the 401; other pins and missing values are said")
    func refusals() async throws {
        try await Typist.run { typist in
            var values = DemoCommand.firstCall(typist.world.endpoints)
            let declining = try start(values, typist)
            try declining.type([
                typist.world.account.username, typist.world.account.password.reveal(), try typist.code(),
            ])
            _ = try await declining.line(with: "balance")
            try declining.type(["no"])
            let declined = await declining.result()
            #expect(declined.status == 1 && declined.output.contains("Not paid: 401."), "\(declined)")
            #expect(try await typist.login().status == 0)
            #expect(try await typist.balance() == "1000.00")

            for index in [3, 4] {
                values[index] = try Pin(sha256: [UInt8](repeating: UInt8(index), count: 32)).description
            }
            let elsewhere = try start(values, typist)
            try elsewhere.type([typist.world.account.username])
            let unpinned = await elsewhere.result()
            #expect(unpinned.status == 1 && unpinned.output.contains("no key of the chain is pinned"), "\(unpinned)")

            let nothing = await (try start([], typist)).result()
            #expect(nothing.status == 64 && nothing.output.contains("run.sh"))
        }
    }

    @Test("Its script says which program is missing where it was told to look")
    func script() throws {
        let directory = try TemporaryDirectory()
        let script = World.package.appendingPathComponent("Examples/urlsession/run.sh").path
        let result = try FinishedProcess.run(
            "/bin/bash", [script, directory.path("")], environment: ["PATH": "/usr/bin:/bin"])
        #expect(result.status == 1 && result.complaints.contains("assent is not in"), "\(result.complaints)")
    }
}
