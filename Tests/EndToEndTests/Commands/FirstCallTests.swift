import AssentCore
import AssentOTP
import AssentPeers
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("The program that an app begins with")
struct FirstCallTests {
    private func start(_ values: [String], _ typist: Typist) throws -> Program.Running {
        try Program.Running(
            Program.Running.limits + [BuiltProgram.beside("FirstCall").path] + values, typing: true,
            environment: ["HOME": typist.program.home, "PATH": "/usr/bin:/bin"])
    }

    @Test("With what the demo prints it signs in, reads the balance, and pays what the user approves")
    func pays() async throws {
        try await Typist.run { typist in
            let running = try start(DemoCommand.firstCall(typist.world.endpoints), typist)
            try running.type([typist.world.account.username, typist.world.account.password.reveal(), try typist.code()])
            #expect(try await running.line(with: "balance").contains("The balance is 1000.00."))
            try running.type(["yes", try typist.code()])
            try running.endInput()
            let result = await running.result()
            #expect(result.status == 0 && result.output.contains("Paid."), "\(result)")
            for text in ["Amount: 200.00 EUR", "To: Bob"] { #expect(result.output.contains(text)) }
            #expect(try await typist.login().status == 0)
            #expect(try await typist.balance() == "800.00")
        }
    }

    @Test("A user with a device is told which number to type there, and their approval there pays")
    func device() async throws {
        try await DeviceTests.run { world, user, device in
            try await DeviceDesk(world: world, user: user, device: device).pays(by: "FirstCall")
        }
    }

    @Test("At a terminal the password is not shown, and what is typed after it is")
    func hidden() async throws {
        try await Typist.run { typist in
            let password = typist.world.account.password.reveal()
            let terminal = try PseudoTerminal()
            let running = try SpawnedProcess(
                BuiltProgram.beside("FirstCall").path, DemoCommand.firstCall(typist.world.endpoints),
                environment: ["HOME": typist.program.home, "PATH": "/usr/bin:/bin"], at: terminal)
            try await terminal.wait(for: "Name: ")
            terminal.type(typist.world.account.username + "\n")
            try await terminal.wait(for: "Password: ")
            #expect(!terminal.echoes)
            terminal.type(password + "\n")
            try await terminal.wait(for: "Code: ")
            #expect(terminal.echoes && !terminal.text.contains(password))
            terminal.type(try typist.code() + "\n")
            try await terminal.wait(for: "The balance is 1000.00.")
            running.signal(SIGTERM)
            _ = await running.ended()
        }
    }

    @Test("What the user does not approve is not paid; a wrong password, other pins and missing values are said")
    func refusals() async throws {
        try await Typist.run { typist in
            var values = DemoCommand.firstCall(typist.world.endpoints)
            let (name, password) = (typist.world.account.username, typist.world.account.password.reveal())
            let declining = try start(values, typist)
            try declining.type([name, password, try typist.code()])
            _ = try await declining.line(with: "balance")
            try declining.type(["no"])
            let declined = await declining.result()
            #expect(declined.status == 1 && declined.output.contains("[declined]"), "\(declined)")
            #expect(declined.output.contains("Send the request again to be asked again."), "\(declined)")

            let mistaken = try start(values, typist)
            try mistaken.type([name, "wrong", try typist.code()])
            try mistaken.endInput()
            let refused = await mistaken.result()
            #expect(refused.status == 1 && !refused.output.contains("balance"), "\(refused)")
            #expect(refused.output.contains("That was not accepted. Try again."), "\(refused)")

            for index in [3, 4] {
                values[index] = try Pin(sha256: [UInt8](repeating: UInt8(index), count: 32)).description
            }
            let elsewhere = try start(values, typist)
            try elsewhere.type([name])
            let unpinned = await elsewhere.result()
            #expect(unpinned.status == 1 && unpinned.output.contains("no key of the chain is pinned"), "\(unpinned)")

            values[4] = "not a pin"
            let mistyped = await (try start(values, typist)).result()
            #expect(mistyped.status == 1 && mistyped.output.hasSuffix("[notBase64]"), "\(mistyped)")

            let nothing = await (try start([], typist)).result()
            #expect(nothing.status == 64 && nothing.output.contains("assent demo --keep"))
        }
    }
}
