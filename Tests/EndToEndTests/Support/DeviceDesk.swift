import AssentCore
import AssentOTP
import AssentPeers
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// A user at one terminal and their device at another, who do what the page on devices says.
struct DeviceDesk: Sendable {
    let world: DemoWorld
    let user: Program
    let device: Program

    /// The device's options in each of its commands, beside its client's file.
    var options: [String] = []

    /// What the device's programs find in their environment.
    var environment: [String: String] = [:]

    private var here: [String] { ["--config", device.clientFile] + options }

    /// A command of the device. After the answers nobody answers any more.
    func onDevice(_ words: String..., typing answers: [String] = []) async throws -> Program.Result {
        try await onDevice(words, typing: answers)
    }

    /// The same.
    func onDevice(_ words: [String], typing answers: [String] = []) async throws -> Program.Result {
        let running = try device.start(words + here, environment: environment, typing: !answers.isEmpty)
        if !answers.isEmpty {
            try running.type(answers)
            try running.endInput()
        }
        return await running.result()
    }

    /// Pays with an app's program that is built beside the tests: the user agrees there, and approves on the device,
    /// which is enrolled first. The program says the number once.
    func pays(by program: String) async throws {
        try await enrol()
        let running = try Program.Running(
            Program.Running.limits + [BuiltProgram.beside(program).path]
                + DemoCommand.firstCall(world.endpoints), typing: true,
            environment: ["HOME": user.home, "PATH": "/usr/bin:/bin"])
        // The one of now was used to sign in with the command, the next one is good already.
        let code = try TOTP(secret: world.account.totpSeed).code(at: Date(timeIntervalSinceNow: 30))
        try running.type([world.account.username, world.account.password.reveal(), code, "yes"])
        try running.endInput()
        let line = try await running.line(with: "Number: ")
        let number = String(try #require(line.firstMatch(of: /Number: ([0-9]{2})/)?.output.1))
        let signed = try await onDevice("transactions", "approve", "--number", number, typing: ["1"])
        #expect(signed.status == 0, "\(signed.errors)")
        let result = await running.result()
        #expect(result.status == 0 && result.output.contains("Paid."), "\(result)")
        #expect(result.output.components(separatedBy: "Number: ").count == 2)
    }

    /// Invites the user's device. Returns the command, which waits for digits, and the code.
    func invite() async throws -> (inviting: Program.Running, code: String) {
        let inviting = try user.start(["device", "invite"], typing: true)
        let line = try await inviting.line(with: "assent device enroll")
        return (inviting, try #require(line.split(separator: " ").last.map(String.init)))
    }

    /// Types the digits that a device has shown, after wrong ones.
    func confirm(
        _ inviting: Program.Running, shown: String, after wrong: [String] = []
    ) async throws -> Program.Result {
        let digits = try #require(shown.firstMatch(of: /([0-9]{4}) ?([0-9]{4})/)?.output)
        try inviting.type(wrong + ["\(digits.1) \(digits.2)"])
        try inviting.endInput()
        let invited = await inviting.result()
        try #require(invited.status == 0, "\(invited.errors)")
        return invited
    }

    /// Enrols the device.
    ///
    /// - Parameters:
    ///   - more: further options of `enroll`.
    ///   - answers: what is typed at the device.
    ///   - wrong: digits that the user types before the right ones.
    /// - Returns: what both commands have said.
    /// - Throws: when one of them fails.
    @discardableResult
    func enrol(
        _ more: [String] = [], typing answers: [String] = [], after wrong: [String] = []
    ) async throws -> (enrolled: Program.Result, invited: Program.Result) {
        let (inviting, code) = try await invite()
        let enrolling = try device.start(
            ["device", "enroll", code] + here + more, environment: environment, typing: !answers.isEmpty)
        if !answers.isEmpty {
            try enrolling.type(answers)
            try enrolling.endInput()
        }
        let enrolled = await enrolling.result()
        try #require(enrolled.status == 0, "\(enrolled.errors)")
        return (enrolled, try await confirm(inviting, shown: enrolled.output, after: wrong))
    }

    /// Begins a payment that the device is to approve. Returns the command, which waits for that, and the number.
    func pay(_ amount: String = "200.00") async throws -> (paying: Program.Running, number: String) {
        let paying = try user.start([
            "request", "POST", "\(world.endpoints.gateway ?? "")/transfers", "--data",
            #"{"to":"Bob","amount":"\#(amount)","currency":"EUR"}"#,
        ])
        let line = try await paying.errorLine(with: "Number")
        return (paying, String(try #require(line.firstMatch(of: /Number: ([0-9]{2})/)?.output.1)))
    }

    /// Pays and approves that at the device, where more is typed after the number.
    ///
    /// - Returns: what the device's command has said, and the transaction.
    func payAndSign(typing more: [String] = []) async throws -> (signed: Program.Result, transaction: String) {
        let (paying, number) = try await pay()
        let signed = try await onDevice("device", "listen", "--once", typing: ["Approve", number] + more)
        #expect(signed.status == 0, "\(signed.errors)")
        let paid = await paying.result()
        #expect(paid.status == 0 && paid.output.contains(#""amount":"200.00""#), "\(paid.errors)")
        return (signed, String(try #require(signed.output.firstMatch(of: /transaction (\S+)\./)?.output.1)))
    }

    /// The bundle of evidence of a transaction.
    func evidence(of transaction: String) async throws -> String {
        let evidence = try await user.run("device", "evidence", "--transaction", transaction)
        try #require(evidence.status == 0, "\(evidence.errors)")
        return evidence.output
    }

    /// Writes a bundle down, and the identity key that it names first. Returns the paths of both.
    func write(_ bundle: String) throws -> (file: String, key: String) {
        let (file, key) = (device.home + "/bundle.json", device.home + "/identity.json")
        try Data(bundle.utf8).write(to: URL(fileURLWithPath: file))
        let identity = try #require(try JSONValue.parse(bundle)["identity"]?.array?.first)
        try Data(identity.serialized().utf8).write(to: URL(fileURLWithPath: key))
        return (file, key)
    }
}
