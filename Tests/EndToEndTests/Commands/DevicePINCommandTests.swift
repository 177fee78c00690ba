import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentCLI

@Suite("The commands about a device's PIN")
struct DevicePINCommandTests {
    static let pin = "wombat-7"
    static let next = "quokka-8"
    static let other = "numbat-9"

    static let policy = """
              policies:
                pin:
                  mode: assisted
                  kdf: "$scrypt$ln=14,r=8,p=1"
                  password: {minLength: 4, history: 2}
                  lock: {max: 3, cap: 20, delays: []}
              keys:
                - {usage: sign, label: payments, policy: pin}

        """

    /// A device that has enrolled with the PIN ``pin``.
    static func run(_ body: (DeviceDesk) async throws -> Void) async throws {
        try await DeviceTests.run(with: policy) { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol(typing: [pin, pin])
            try await body(desk)
        }
    }

    /// Neither a PIN nor a key is in what a program has said.
    static func expectNoSecret(in result: Program.Result, sourceLocation: SourceLocation = #_sourceLocation) {
        for said in [result.output, result.errors] {
            for secret in [pin, next, other, #""d":"#, "PRIVATE"] {
                #expect(!said.contains(secret), "\(said)", sourceLocation: sourceLocation)
            }
        }
    }

    /// What `pin show` says of the only PIN.
    static func shown(_ desk: DeviceDesk) async throws -> JSONValue {
        let result = try await desk.onDevice("device", "pin", "show")
        #expect(result.status == 0, "\(result.errors)")
        expectNoSecret(in: result)
        return try JSONValue.parse(result.output)
    }

    /// The container, as the device's list has it.
    static func container(_ desk: DeviceDesk) async throws -> String {
        let listed = try await desk.onDevice("device", "list").output
        return try #require(try JSONValue.parse(listed)["container"]?.string)
    }

    @Test(
        "pin show uses no try; pin change wants the old one and the new one twice, and then the old one opens nothing")
    func change() async throws {
        try await Self.run { desk in
            let container = try await Self.container(desk)
            let before: JSONValue = [
                "container": .string(container), "slot": "signing", "mode": "assisted", "state": "OPEN", "tries": 3,
                "spare": 20,
            ]
            #expect(try await Self.shown(desk) == before)
            #expect(try await Self.shown(desk) == before)

            func change(_ answers: String..., options: [String] = []) async throws -> Program.Result {
                let result = try await desk.onDevice(["device", "pin", "change"] + options, typing: answers)
                Self.expectNoSecret(in: result)
                return result
            }
            let changed = try await change(
                // A wrong old one, then new ones that break a rule or were typed differently.
                Self.other, Self.next, Self.next, Self.pin, "123", String(repeating: "x", count: 300), Self.next,
                Self.other, Self.next, Self.next)
            #expect(changed.status == 0 && changed.output.contains("Changed"), "\(changed.errors)")
            for text in ["Tries left: 2.", "at least 4 characters", "1 to 128 bytes", "not the same"] {
                #expect(changed.errors.contains(text), "\(changed.errors)")
            }
            let after = try await Self.shown(desk)
            #expect(after["tries"] == 3 && after["spare"] == 19, "\(after)")

            for old in [Self.next, Self.pin] {
                let used = try await change(Self.next, old, old)
                #expect(used.status == 1 && used.errors.contains("used before"), "\(used.errors)")
            }
            let silent = try await change(Self.next, Self.other)
            #expect(silent.status == 1 && silent.errors.contains("must be answered"), "\(silent.errors)")
            let named = try await change(
                Self.next, Self.other, Self.other,
                options: ["--slot", "otp", "--container", "nothing", "--slot", "signing", "--container", container])
            #expect(named.status == 0, "\(named.errors)")
            let signed = try await desk.payAndSign(typing: [Self.next, Self.other]).signed
            #expect(signed.errors.contains("Tries left: 2."), "\(signed.errors)")
            Self.expectNoSecret(in: signed)
        }
    }

    @Test(
        "Wrong PINs lock it, which pin show says; pin unlock lets the user's device try again, and nobody else does"
    )
    func unlock() async throws {
        try await Self.run { desk in
            let container = try await Self.container(desk)
            let wrong = [Self.other, Self.next, Self.next]
            let locked = try await desk.onDevice(
                ["device", "pin", "change"], typing: wrong + wrong + wrong + [Self.pin, Self.next, Self.next])
            #expect(locked.status == 1 && locked.errors.contains("Tries left: 0."), "\(locked.errors)")
            #expect(locked.errors.contains("locked") && locked.errors.contains("[locked]"), "\(locked.errors)")
            Self.expectNoSecret(in: locked)
            let shown = try await Self.shown(desk)
            #expect(shown["state"] == "LOCKED" && shown["tries"] == 0 && shown["spare"] == 17, "\(shown)")

            func unlock(_ words: String..., by program: Program? = nil) async throws -> Program.Result {
                let program = program ?? desk.user
                let result = try await program.start(
                    ["device", "pin", "unlock"] + words + ["--config", program.clientFile]
                ).result()
                Self.expectNoSecret(in: result)
                return result
            }
            let stranger = try await unlock("--container", container, by: desk.device)
            #expect(stranger.status == 1 && stranger.errors.contains("assent login"), "\(stranger.errors)")
            for name in ["nothing", "", "..", "a/b?c#d", "\u{1B}[2J", String(repeating: "x", count: 4_000)] {
                let refused = try await unlock("--container", name)
                // A path that two programs could read differently is not even sent.
                let isSent = !["..", "a/b?c#d"].contains(name)
                let said = isSent ? "The server refused" : "cannot be sent as it is"
                #expect(refused.status == (isSent ? 2 : 1) && refused.errors.contains(said), "\(refused.errors)")
                #expect(!refused.errors.contains("\u{1B}"))
            }
            let huge = try await unlock("--container", String(repeating: "x", count: 100_000))
            #expect(huge.status == 1 && huge.errors.contains("more than 16 KiB"), "\(huge.status) \(huge.errors)")
            let absent = try await unlock("--container", container, "--slot", "otp")
            #expect(absent.status == 2 && absent.errors.contains("no such password slot"), "\(absent.errors)")
            #expect(try await Self.shown(desk)["state"] == "LOCKED")

            // It may be asked for twice, and of what is open.
            for _ in 0..<2 {
                let done = try await unlock("--container", "nothing", "--container", container)
                #expect(done.status == 0 && done.output.contains("may be tried again"), "\(done.errors)")
            }
            #expect(try await Self.shown(desk)["state"] == "OPEN")
            let changed = try await desk.onDevice(
                ["device", "pin", "change"], typing: [Self.pin, Self.next, Self.next])
            #expect(changed.status == 0, "\(changed.errors)")
        }
    }

    @Test("Where there is no PIN, or no container, the commands say so, and show nothing")
    func nothing() async throws {
        try await DeviceTests.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            func expectNothing() async throws {
                let shown = try await desk.onDevice("device", "pin", "show")
                #expect(shown.status == 0 && shown.output.isEmpty && shown.errors.isEmpty, "\(shown)")
            }
            try await expectNothing()
            let early = try await desk.onDevice("device", "pin", "change")
            #expect(early.status == 1 && early.errors.contains("not enrolled"), "\(early.errors)")

            try await desk.enrol()
            try await expectNothing()
            let change = ["device", "pin", "change"]
            for (words, text) in [
                ([], "need no PIN"), (["--slot", "signing"], "no PIN or password signing"),
                (["--container", "nothing"], "No container of this device fits"),
                (["--container", ""], "No container of this device fits"),
                (["--container", String(repeating: "x", count: 100_000)], "No container of this device fits"),
            ] as [([String], String)] {
                let result = try await desk.onDevice(change + words)
                #expect(result.status == 1 && result.errors.contains(text), "\(words): \(result.errors)")
            }
        }
    }
}
