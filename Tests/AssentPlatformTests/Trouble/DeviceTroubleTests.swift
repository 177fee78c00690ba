#if TPM && PKCS11 && os(Linux)
import AssentCore
import AssentPeers
import AssentVault
import CP11Kit
import Foundation
import Testing

@testable import AssentPlatform

/// Each with the vault made in order, opened while something is wrong with the device, and again when all is well.
@Suite("A vault whose device is in trouble")
struct DeviceTroubleTests {
    private static let secrets = ["one": "1", "two": "2"]

    private static func keys(_ place: TemporaryDirectory, _ device: any KeyProvider) -> VaultKeys {
        .preferHardware(
            [device], otherwise: SoftwareKeyProvider(unprotectedFile: place.url.appending(path: "software.key")))
    }

    /// What a vault says, which must be an error that tells what to do; every file of it stays as it was, and no
    /// software takes the device's place, though it would be there.
    private static func open(
        _ place: TemporaryDirectory, _ device: any KeyProvider, _ trouble: String = ""
    ) async throws -> SecretStoreError {
        let before = place.bytes()
        let error = await #expect(throws: SecretStoreError.self, "\(trouble)") {
            _ = try await FileVault.open(
                place.url.appending(path: "vault"), keys: keys(place, device))
        }
        #expect(place.bytes() == before, "the vault was touched")
        #expect(!FileManager.default.fileExists(atPath: place.path("software.key")))
        let found = try #require(error)
        #expect(found.detail.count > 40, "\(found)")
        return found
    }

    private static func make(_ place: TemporaryDirectory, _ device: any KeyProvider) async throws -> FileVault {
        let vault = try await FileVault.open(
            place.url.appending(path: "vault"), keys: keys(place, device), lockTimeout: 300)
        for (name, value) in secrets { try await vault.update(name, to: Secret(value), expected: .absent) }
        return vault
    }

    private static func isWhole(_ place: TemporaryDirectory, _ device: any KeyProvider) async throws -> Bool {
        let vault = try await FileVault.open(
            place.url.appending(path: "vault"), keys: keys(place, device), createIfMissing: false)
        for (name, value) in secrets where try await vault.value(name)?.value != Secret(value) { return false }
        return try await vault.names() == secrets.keys.sorted()
    }

    @Test("A token that is removed while the vault is open stops updates; what was stored is there with the token")
    func removedInUse() async throws {
        let hsm = try SoftHSM.shared.get()
        let module = try hsm.faulty()
        let place = try TemporaryDirectory()
        let device = module.provider(try hsm.makeToken())
        let vault = try await Self.make(place, device)
        let removed = UInt(CKR_DEVICE_REMOVED)
        for fault in [["sign": removed, "derive": removed], ["sign": removed, "derive": removed, "slot-count": 0]] {
            try module.set(fault)
            let before = place.bytes()
            let error = await #expect(throws: SecretStoreError.self) {
                try await vault.update("one", to: Secret("new"), expected: .any)
            }
            #expect(error?.code == .keyUnavailable)
            #expect(error?.detail.contains("Insert") == true)
            #expect(try await vault.value("two")?.value == Secret("2"))
            try module.set([:])
            #expect(place.bytes() == before)
        }
        #expect(try await Self.isWhole(place, device))
    }

    @Test("A wrong PIN, and the lock-out that follows, are errors of their own, for a token and for a TPM")
    func pins() async throws {
        let hsm = try SoftHSM.shared.get()
        let module = try hsm.faulty()
        let label = try hsm.makeToken()
        let place = try TemporaryDirectory()
        _ = try await Self.make(place, module.provider(label))
        let wrong = module.provider(label, pin: KnownSecret(Secret("000000")))
        #expect(try await Self.open(place, wrong).code == .wrongKey)
        try module.set(["login": UInt(CKR_PIN_LOCKED)])
        let locked = try await Self.open(place, module.provider(label))
        #expect(locked.code == .keyLocked)
        #expect(locked.detail.contains("PUK"))
        try module.set([:])
        #expect(try await Self.isWhole(place, module.provider(label)))

        let tpm = try SoftTPM()
        let other = try TemporaryDirectory()
        _ = try await Self.make(other, tpm.provider())
        let first = try await Self.open(other, tpm.provider(KnownSecret(Secret("000000"))))
        #expect(first.code == .wrongKey)
        var code = first.code
        for _ in 0..<10 where code != .keyLocked {
            code = try await Self.open(other, tpm.provider(KnownSecret(Secret("000000")))).code
        }
        // The right PIN does not help now.
        let refused = try await Self.open(other, tpm.provider())
        #expect(refused.code == .keyLocked)
        #expect(refused.detail.contains("--clear-lockout"))
        try tpm.tool("tpm2_dictionarylockout", ["--clear-lockout"])
        #expect(try await Self.isWhole(other, tpm.provider()))
    }

    @Test("A module that is missing or answers garbage opens nothing, and nothing takes its place")
    func modules() async throws {
        let hsm = try SoftHSM.shared.get()
        let module = try hsm.faulty()
        let label = try hsm.makeToken()
        let place = try TemporaryDirectory()
        _ = try await Self.make(place, module.provider(label))
        let missing = PKCS11KeyProvider(
            module: place.path("none.so"), token: label, pin: KnownSecret(SoftHSM.pin))
        let error = try await Self.open(place, missing)
        #expect(error.code == .keyUnavailable)
        #expect(error.detail.contains("none.so"))
        for keys: VaultKeys in [.requireHardware(missing), .requireHardware([missing, missing])] {
            let fresh = place.url.appending(path: "fresh")
            let error = await #expect(throws: SecretStoreError.self) {
                _ = try await FileVault.open(fresh, keys: keys)
            }
            #expect(error?.code == .keyUnavailable)
            #expect(!FileManager.default.fileExists(atPath: fresh.path(percentEncoded: false)))
        }
        let faults: [([String: UInt], SecretStoreError.Code)] = [
            (["slot-count": 1 << 40], .keyUnavailable), (["version": 9], .keyUnavailable),
            (["object-count": .max], .tampered),
        ]
        for (fault, code) in faults {
            let own = try hsm.faulty()
            try own.set(fault)
            #expect(try await Self.open(place, own.provider(label), "\(fault)").code == code, "\(fault)")
        }
        #expect(try await Self.isWhole(place, module.provider(label)))
    }

    @Test(
        "A TPM in failure mode, one that was not started, and one that answers garbage open nothing and say so",
        arguments: [
            ("0x101", SecretStoreError.Code.keyUnavailable, "failure mode"), ("0x100", .keyUnavailable, "failure mode"),
            ("0x922", .keyUnavailable, "Try again"), ("0x921", .keyLocked, "--clear-lockout"),
            ("nothing", .keyUnavailable, "sense"), ("noise", .keyUnavailable, "sense"),
            ("shorter", .keyUnavailable, "reached"), ("silent", .keyUnavailable, "reached"),
        ])
    func failingTPM(_ kind: String, _ code: SecretStoreError.Code, _ text: String) async throws {
        let tpm = try SoftTPM()
        let place = try TemporaryDirectory()
        _ = try await Self.make(place, tpm.provider())
        let program = place.path("faulty-tpm")
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "faulty-tpm.c")
        try SoftHSM.run("/usr/bin/env", ["clang", "-o", program, source.path(percentEncoded: false)])
        let failing = TPMKeyProvider(
            directory: tpm.keys, tcti: "cmd:\(program) \(kind)", pin: KnownSecret(SoftTPM.pin))
        #expect(await failing.isAvailable == false)
        let error = try await Self.open(place, failing)
        #expect(error.code == code, "\(error)")
        #expect(error.detail.contains(text), "\(error)")
        let new = await failure { _ = try await failing.makeSigningKey(named: "new", algorithm: .es256) }
        #expect(new != nil)
        #expect(try await tpm.provider().signingKey(named: "new") == nil)
        #expect(try await Self.isWhole(place, tpm.provider()))
    }
}
#endif
