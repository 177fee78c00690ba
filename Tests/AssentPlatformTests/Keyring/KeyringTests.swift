#if Keyring && os(Linux)
import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentPlatform

@Suite("Secrets in the kernel's keyring")
struct KeyringTests {
    /// A time after which the kernel, which goes by real time, forgets nothing before a test has ended.
    private static let day: TimeInterval = 86_400

    /// What the kernel lets this user keep, in bytes (keyrings(7)).
    private static let quota: Int = {
        let file = geteuid() == 0 ? "root_maxbytes" : "maxbytes"
        let text = try? String(contentsOfFile: "/proc/sys/kernel/keys/" + file, encoding: .utf8)
        return Int((text ?? "").filter(\.isNumber)) ?? 0
    }()

    @Test(
        "The user's keyring and the persistent one keep the contract of secret stores",
        arguments: SecretStoreContract.rules,
        [KeyringAnchor.user, .persistent])
    func contract(_ rule: SecretStoreContract.Rule, _ anchor: KeyringAnchor) async throws {
        let keyring = try TestKeyring(anchor)
        let store = try keyring.open()
        #expect(await store.isAvailable)
        do {
            try await rule.check(store)
        } catch let error as SecretStoreError where error.code == .quotaExceeded {
            // A user with the kernel's default quota cannot keep the largest value.
            #expect(Self.quota < 4 << 20 && rule.description == "A value has at most 1 MiB")
        }
    }

    @Test("Only who possesses a key has access to it, and what was replaced is gone")
    func permissions() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open(timeToLive: Self.day)
        try await store.update("name", to: Secret(bytes: [UInt8](repeating: 1, count: 40_000)), expected: .absent)
        try await store.update("name", to: Secret(bytes: [UInt8](repeating: 2, count: 40_000)), expected: .exactly(1))
        try keyring.inStore { store, _ in
            var keys = [store]
            keys += try store.members()
            try keyring.inRecord("name") { keys += try $0.members() }
            // The store, its versions, the record, its head, two parts of the value.
            #expect(Set(keys).count == 6)
            for key in keys {
                let found = try key.describe()
                #expect(found.owner == geteuid())
                #expect(found.permissions == KernelKey.possessorOnly, "\(found.text)")
            }
        }
    }

    @Test("A value that has expired by the clock is an error, stays listed, and can be overwritten and removed")
    func expiryByClock() async throws {
        let keyring = try TestKeyring()
        let clock = ManualClock()
        let store = try keyring.open(timeToLive: Self.day, clock: clock)
        let lasting = try keyring.open(clock: clock)
        try await store.update("short", to: Secret("1"), expected: .absent)
        try await lasting.update("long", to: Secret("2"), expected: .absent)
        clock.advance(by: Self.day - 1)
        #expect(try await store.value("short")?.value == Secret("1"))
        clock.advance(by: 1)
        #expect(await storeCode { _ = try await store.value("short") } == .expired)
        #expect(await storeCode { _ = try await lasting.value("short") } == .expired)
        #expect(try await store.value("long")?.value == Secret("2"))
        #expect(try await store.names() == ["long", "short"])
        #expect(await storeCode { try await store.update("short", to: nil, expected: .absent) } == .versionMismatch)
        #expect(try await store.update("short", to: Secret("3"), expected: .exactly(1)) == 2)
        #expect(try await store.value("short")?.value == Secret("3"))
    }

    @Test("The kernel itself forgets a value in time, whatever the clock says")
    func expiryByKernel() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open(timeToLive: 1, clock: ManualClock())
        let lasting = try keyring.open()
        try await lasting.update("long", to: Secret("2"), expected: .absent)
        try await store.update("short", to: Secret("1"), expected: .absent)
        var code: SecretStoreError.Code?
        // Real time, in which the kernel counts: about a second.
        for _ in 0..<10_000 where code == nil {
            code = await storeCode { _ = try await store.value("short") }
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            nanosleep(&pause, nil)
        }
        #expect(code == .expired)
        #expect(try await store.value("long")?.value == Secret("2"))
        #expect(try await store.update("short", to: nil, expected: .exactly(1)) == 0)
        #expect(try await store.names() == ["long"])
    }

    @Test("What somebody revoked is an error of its own, and the rest stays")
    func revoked() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        for name in ["part", "head", "all", "kept"] {
            try await store.update(name, to: Secret(name), expected: .absent)
        }
        try keyring.inKey("0", of: "part") { $0.revoke() }
        try keyring.inKey("head", of: "head") { $0.revoke() }
        try keyring.inRecord("all") { $0.revoke() }
        for name in ["part", "head", "all"] {
            #expect(await storeCode { _ = try await store.value(name) } == .revoked, "\(name)")
        }
        #expect(try await store.value("kept")?.value == Secret("kept"))
        #expect(Set(try await store.names()).isSuperset(of: ["part", "head", "kept"]))
        #expect(await storeCode { try await store.update("all", to: nil, expected: .exactly(1)) } == .revoked)
        #expect(try await store.update("all", to: nil, expected: .any) == 0)
        #expect(try await store.update("head", to: Secret("new"), expected: .any) == 2)
        #expect(try await store.update("part", to: Secret("new"), expected: .exactly(1)) == 2)
        #expect(try await store.value("head")?.value == Secret("new"))
        #expect(try await store.names() == ["head", "kept", "part"])
    }

    @Test("A store that somebody revoked is an error until everything is removed, and then goes on")
    func revokedStore() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        try await store.update("name", to: Secret("1"), expected: .absent)
        try keyring.inStore { store, _ in store.revoke() }
        #expect(await storeCode { _ = try await store.value("name") } == .revoked)
        #expect(await storeCode { _ = try await store.names() } == .revoked)
        #expect(await storeCode { try await store.update("name", to: Secret("2"), expected: .any) } == .revoked)
        guard case .unavailable(let reason) = await store.availability else {
            Issue.record("a revoked store is available")
            return
        }
        #expect(reason.contains("remove everything"))
        try await store.removeAll()
        #expect(try await store.names() == [])
        try await store.update("name", to: Secret("3"), expected: .absent)
        #expect(try await store.value("name")?.value == Secret("3"))
    }

    @Test("Versions never go back: not over removals, damage, other instances, or removing everything")
    func versions() async throws {
        let keyring = try TestKeyring()
        for _ in 0..<3 { try await keyring.open().update("a", to: Secret("x"), expected: .any) }
        try await keyring.open().update("a", to: nil, expected: .exactly(3))
        #expect(try await keyring.open().update("a", to: Secret("x"), expected: .absent) == 4)
        // The head, and with it the version, is gone.
        try keyring.inRecord("a") { record in
            try keyring.inKey("head", of: "a") { try $0.unlink(from: record) }
        }
        #expect(try await keyring.open().update("a", to: Secret("x"), expected: .any) == 5)
        try keyring.inKey("head", of: "a") { try $0.update([1]) }
        try await keyring.open().update("a", to: nil, expected: .any)
        #expect(try await keyring.open().update("a", to: Secret("x"), expected: .absent) == 6)
        try await keyring.open().removeAll()
        #expect(try await keyring.open().update("b", to: Secret("x"), expected: .absent) == 7)
    }

    @Test("The number of secrets and the quota are bounded, and what is there stays")
    func many() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        var count = 0
        let code = await storeCode {
            while count <= KeyringSecretStore.entryLimit {
                try await store.update("\(count)", to: Secret("x"), expected: .absent)
                count += 1
            }
        }
        #expect(code == (count == KeyringSecretStore.entryLimit ? .invalidInput : .quotaExceeded))
        #expect(count > 10)
        #expect(try await store.names().count == count)
        try await store.update("0", to: nil, expected: .any)
        try await store.update("last", to: Secret("y"), expected: .absent)
        #expect(try await store.value("last")?.value == Secret("y"))
    }

    @Test(
        "Names and times that cannot be are refused at once",
        arguments: [
            ("", nil), (String(repeating: "n", count: 201), nil), ("a\0b", nil), ("n", 0.5), ("n", .nan), ("n", 1e12),
        ]
            as [(String, TimeInterval?)])
    func invalid(_ name: String, _ timeToLive: TimeInterval?) async {
        let code = await storeCode { _ = try KeyringSecretStore(store: name, timeToLive: timeToLive) }
        #expect(code == .invalidInput)
    }

    @Test("A lock directory that others can enter is refused, and nothing is changed")
    func exposedLocks() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        try await store.update("name", to: Secret("1"), expected: .absent)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: keyring.locks.url.path(percentEncoded: false))
        #expect(await storeCode { try await store.update("name", to: Secret("2"), expected: .any) } == .notPermitted)
        #expect(await storeCode { _ = try await store.lease("name", deadline: .distantPast) } == .notPermitted)
        #expect(try await store.value("name")?.value == Secret("1"))
    }
}
#endif
