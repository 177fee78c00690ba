import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent admin devices")
struct AdminDevicesTests {
    /// Runs `assent admin devices` for the signed-in user, who may be an administrator.
    private struct Administration {
        let desk: DeviceDesk

        func callAsFunction(_ words: String...) async throws -> Program.Result {
            let result = try await desk.user.start(["admin", "devices"] + words).result()
            DevicePINCommandTests.expectNoSecret(in: result)
            #expect(!result.errors.contains("\u{1B}"))
            return result
        }

        /// The only container of the device's user.
        func listed() async throws -> JSONValue {
            let list = try await self("list", desk.world.account.username)
            #expect(list.status == 0 && list.errors.isEmpty, "\(list.errors)")
            return try JSONValue.parse(list.output)
        }

        func becomeAdministrator() async throws {
            let token = try #require(desk.world.endpoints.bootstrapFile)
            try #require(try await desk.user.run("admin", "bootstrap", "--token-file", token).status == 0)
        }
    }

    private static func run(
        _ body: (_ admin: Administration, _ desk: DeviceDesk, _ container: String) async throws -> Void
    ) async throws {
        try await DevicePINCommandTests.run { desk in
            try await body(Administration(desk: desk), desk, try await DevicePINCommandTests.container(desk))
        }
    }

    @Test("Users see their own devices and change none; who has not signed in sees nothing")
    func users() async throws {
        try await Self.run { admin, desk, container in
            let listed = try await admin.listed()
            #expect(listed["did"]?.string == container && listed["state"] == "ACTIVE", "\(listed)")
            let others = try await admin("list", "somebody")
            #expect(others.status == 2 && others.errors.contains("may not do this"), "\(others.errors)")
            for action in ["block", "unblock", "lock", "wipe"] {
                let refused = try await admin("change", action, "--container", container)
                #expect(refused.status == 2 && refused.errors.contains("may not do this"), "\(refused.errors)")
            }
            #expect(try await admin.listed() == listed)
            let here = ["--config", desk.device.clientFile]
            for words in [["list", "ana"], ["change", "block", "--container", container]] {
                let stranger = try await desk.device.start(["admin", "devices"] + words + here).result()
                #expect(stranger.status == 1 && stranger.errors.contains("assent login"), "\(stranger.errors)")
            }
        }
    }

    @Test(
        "An administrator blocks, unblocks and ends a device, which may be said twice, and cannot be undone at its end")
    func container() async throws {
        try await Self.run { admin, desk, container in
            try await admin.becomeAdministrator()
            func change(_ action: String, _ state: String) async throws {
                for _ in 0..<2 {
                    let done = try await admin("change", action, "--container", "nothing", "--container", container)
                    #expect(done.status == 0 && done.output.contains("is \(state)"), "\(action): \(done.errors)")
                }
                #expect(try await admin.listed()["state"]?.string == state)
            }
            try await change("block", "BLOCKED")
            let blocked = try await desk.onDevice("transactions", "sign", "A text")
            #expect(blocked.status == 1 && blocked.errors.contains("blocked"), "\(blocked.errors)")
            try await change("unblock", "ACTIVE")
            let signed = try await desk.onDevice(
                "transactions", "sign", "A text", typing: ["1", DevicePINCommandTests.pin])
            #expect(signed.status == 0, "\(signed.errors)")
            try await change("revoke", "REVOKED")
            for action in ["block", "unblock", "lock", "unlock"] {
                let late = try await admin("change", action, "--container", container)
                #expect(late.status == 2 && late.errors.contains("The server refused"), "\(action): \(late)")
            }
            let gone = try await desk.onDevice("device", "pin", "show")
            #expect(gone.status == 0 && gone.output.isEmpty && gone.errors.contains("has ended"), "\(gone)")
            let nothing = try await desk.onDevice("device", "pin", "show")
            #expect(nothing.status == 0 && nothing.output.isEmpty && nothing.errors.isEmpty, "\(nothing)")
        }
    }

    @Test("An administrator locks, unlocks and destroys what a PIN opens; the device is told")
    func slot() async throws {
        try await Self.run { admin, desk, container in
            try await admin.becomeAdministrator()
            func state() async throws -> String? { try await DevicePINCommandTests.shown(desk)["state"]?.string }
            func change(_ action: String, _ more: String...) async throws -> Program.Result {
                let words = ["admin", "devices", "change", action, "--container", container] + more
                return try await desk.user.start(words).result()
            }
            for (action, after) in [("lock", "LOCKED"), ("unlock", "OPEN"), ("wipe", "SHREDDED")] {
                for _ in 0..<2 {
                    let done = try await change(action)
                    #expect(done.status == 0 && done.output.contains("PIN"), "\(action): \(done)")
                    #expect(try await state() == after)
                }
                let elsewhere = try await change(action, "--slot", "otp")
                #expect(elsewhere.status == 2 && elsewhere.errors.contains("no such password slot"), "\(elsewhere)")
                let slot = try await admin.listed()["slots"]?.array?.first
                #expect(slot?["state"]?.string == after, "\(action)")
            }
            let late = try await change("unlock")
            #expect(late.status == 2 && late.errors.contains("were destroyed"), "\(late)")
            let signed = try await desk.onDevice(
                "transactions", "sign", "A text", typing: ["1", DevicePINCommandTests.pin])
            #expect(signed.status != 0 && !signed.output.contains("Approved"), "\(signed)")
        }
    }

    @Test("A user or a container that there is not is refused by name, however it is written")
    func unknown() async throws {
        try await Self.run { admin, desk, container in
            try await admin.becomeAdministrator()
            for user in ["nobody", "", "..", "a b&user=ana", "\u{1B}[2J", String(repeating: "x", count: 4_000)] {
                let list = try await admin("list", user)
                #expect(list.status == 2 && list.output.isEmpty, "\(user.prefix(20)): \(list)")
                let change = try await admin("change", "revoke", "--container", user)
                // A path with a segment of dots is not even sent.
                let status: Int32 = user == ".." ? 1 : 2
                #expect(change.status == status && change.output.isEmpty, "\(user.prefix(20)): \(change)")
            }
            let huge = String(repeating: "x", count: 100_000)
            for words in [["list", huge], ["change", "revoke", "--container", huge]] {
                let refused = try await desk.user.start(["admin", "devices"] + words).result()
                #expect(refused.status == 1 && refused.errors.contains("more than 16 KiB"), "\(refused)")
            }
            #expect(try await admin.listed()["state"] == "ACTIVE")
        }
    }
}
