import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

@Suite("No path falls back silently")
struct ProtectionTests {
    private static let secrets = ["one": "1", "two": "22"]

    private static func filled(_ disk: SimulatedDisk, _ keys: VaultKeys) async throws {
        let vault = try await vault(on: disk, guardedBy: keys)
        for (name, value) in secrets { try await vault.update(name, to: Secret(value), expected: .absent) }
    }

    /// Every public way to use a vault.
    private static let uses: [(String, @Sendable (FileVault) async throws -> Void)] = [
        ("value", { _ = try await $0.value("one") }),
        ("names", { _ = try await $0.names() }),
        ("entries", { _ = try await $0.entries() }),
        ("info", { _ = try await $0.info() }),
        ("update", { try await $0.update("one", to: Secret("3"), expected: .any) }),
        ("remove", { try await $0.update("one", to: nil, expected: .any) }),
        ("removeAll", { try await $0.removeAll() }),
        ("check", { _ = try await $0.check() }),
        ("check, removing", { _ = try await $0.check(removingDamaged: true) }),
        ("rekey", { _ = try await $0.rekey(to: .requireHardware(FakeDevice())) }),
        ("lease", { _ = try await $0.lease("one", deadline: .distantPast) }),
    ]

    @Test("Where no hardware is present and it is required, making a vault fails, says so, and leaves nothing")
    func creationWithoutHardware() async throws {
        let unplugged = FakeDevice()
        unplugged.fail(.unavailable)
        let software = FakeDevice(kind: "soft", protection: .software)
        let plain = FakeDevice(kind: "plain", protection: .unprotected)
        let ways: [VaultKeys] = [
            .requireHardware(), .requireHardware(unplugged), .requireHardware(software), .requireHardware(plain),
            .requireHardware([unplugged, software]), .requireHardware([unplugged, unplugged]),
            .preferHardware([software], otherwise: plain),
        ]
        for keys in ways {
            let disk = SimulatedDisk()
            let failure = await code { _ = try await vault(on: disk, guardedBy: keys) }
            #expect(failure == .keyUnavailable)
            #expect(disk.names == [])
            #expect(software.state.withLock { $0.signing.isEmpty } && plain.state.withLock { $0.signing.isEmpty })
        }
        let hardware = FakeDevice()
        #expect(
            await code { _ = try await vault(on: SimulatedDisk(), guardedBy: .software(hardware)) } == .invalidInput)
    }

    @Test(
        "Hardware that is preferred, there, and then fails is an error and no reason for software",
        arguments: [
            KeyProviderError.Code.wrongSecret, .lockedOut, .userAbsent, .unsupported, .failed, .unavailable,
        ])
    func preferredFails(reason: KeyProviderError.Code) async throws {
        let device = Present()
        device.base.fail(reason)
        let software = FakeDevice(kind: "soft", protection: .software)
        let disk = SimulatedDisk()
        let failure = await code {
            _ = try await vault(on: disk, guardedBy: .preferHardware([device], otherwise: software))
        }
        let expected: [KeyProviderError.Code: SecretStoreError.Code] = [
            .wrongSecret: .wrongKey, .lockedOut: .keyLocked,
        ]
        #expect(failure == expected[reason] ?? .keyUnavailable)
        #expect(software.calls() == [])
        #expect(disk.names == [])
    }

    @Test("A locked device does not lead to software either, and the error differs from that of a missing one")
    func lockedOut() async throws {
        let (device, software) = (FakeDevice(), FakeDevice(kind: "soft", protection: .software))
        let keys = VaultKeys.preferHardware([device], otherwise: software)
        let disk = SimulatedDisk()
        device.fail(.lockedOut)
        #expect(await code { _ = try await vault(on: disk, guardedBy: keys) } == .keyLocked)
        #expect(disk.names == [] && software.calls() == [])
        device.fail(nil)
        try await Self.filled(disk, keys)
        device.fail(.lockedOut)
        #expect(await code { _ = try await vault(on: disk, guardedBy: keys) } == .keyLocked)
        device.fail(.unavailable)
        #expect(await code { _ = try await vault(on: disk, guardedBy: keys) } == .keyUnavailable)
        #expect(software.calls() == [])
    }

    @Test("Preferring hardware takes it when it is there, software when it is not, and never changes its mind")
    func preference() async throws {
        let (device, software) = (FakeDevice(), FakeDevice(kind: "soft", protection: .software))
        let keys = VaultKeys.preferHardware([device], otherwise: software)
        let disk = SimulatedDisk()
        try await Self.filled(disk, keys)
        #expect(try await vault(on: disk, guardedBy: keys).info().protection == .hardware)
        device.fail(.unavailable)
        #expect(await code { _ = try await vault(on: disk, guardedBy: keys) } == .keyUnavailable)
        #expect(software.calls() == [])

        let other = SimulatedDisk()
        try await Self.filled(other, keys)
        #expect(try await vault(on: other, guardedBy: keys).info().protection == .software)
        device.fail(nil)
        let before = device.calls().count
        let again = try await vault(on: other, guardedBy: keys)
        #expect(try await again.info().protection == .software)
        #expect(try await again.info().level == .preferHardware)
        #expect(device.calls().count == before, "hardware that came later was used without being asked for")
    }

    @Test("A vault that hardware guards does not open without it in any way, and nothing new is made")
    func laterWithoutHardware() async throws {
        let device = FakeDevice()
        let disk = SimulatedDisk()
        try await Self.filled(disk, .requireHardware(device))
        let software = FakeDevice(kind: "soft", protection: .software)
        // The same kind, in software.
        let pretender = FakeDevice(protection: .software)
        let gone = FakeDevice(kind: "gone")
        gone.fail(.unavailable)
        let before = disk.copy()
        for keys: VaultKeys in [
            .software(software), .software(pretender), .preferHardware([], otherwise: software),
            .preferHardware([gone], otherwise: software), .preferHardware([gone], otherwise: pretender),
            .requireHardware(gone), .requireHardware(FakeDevice(kind: "other")), .requireHardware(),
        ] {
            let failure = await code { _ = try await vault(on: disk, guardedBy: keys) }
            #expect(failure == .protectionMismatch)
        }
        // Another device of the same kind does not have the key.
        #expect(await code { _ = try await vault(on: disk, guardedBy: .requireHardware(FakeDevice())) } == .keyLost)
        #expect(software.state.withLock { $0.signing.isEmpty } && pretender.state.withLock { $0.signing.isEmpty })
        #expect(disk.names == before.names && disk.names.allSatisfy { disk[$0] == before[$0] })
    }

    @Test("A device that lost one of a vault's two keys is not said to be another user's")
    func halfOfTheKeys() async throws {
        for isSigning in [true, false] {
            let (disk, device) = (SimulatedDisk(), FakeDevice())
            _ = try await vault(on: disk, guardedBy: .requireHardware(device))
            device.state.withLock { state in
                if isSigning { state.signing = [:] } else { state.agreement = [:] }
            }
            let error = await #expect(throws: SecretStoreError.self) {
                _ = try await vault(on: disk, guardedBy: .requireHardware(device))
            }
            #expect(error?.code == .keyLost && error?.detail.contains("another user's vault") == false)
        }
    }

    @Test("A software vault is not taken for a hardware one")
    func softwareIsNotHardware() async throws {
        let (device, software) = (FakeDevice(), FakeDevice(kind: "soft", protection: .software))
        let disk = SimulatedDisk()
        try await Self.filled(disk, .software(software))
        #expect(
            await code { _ = try await vault(on: disk, guardedBy: .requireHardware(device)) } == .protectionMismatch)
        let plain = FakeDevice(kind: "soft", protection: .unprotected)
        #expect(await code { _ = try await vault(on: disk, guardedBy: .software(plain)) } == .protectionMismatch)
    }

    @Test("A provider that goes away while the vault is open stops updates, and what is open can be read")
    func goesAway() async throws {
        for (name, use) in Self.uses {
            let device = FakeDevice()
            let disk = SimulatedDisk()
            try await Self.filled(disk, .requireHardware(device))
            let opened = try await vault(on: disk, guardedBy: .requireHardware(device))
            let keys = device.state.withLock { $0.signing.count }
            device.fail(.unavailable)
            let before = disk.copy()
            let failure = await code { try await use(opened) }
            #expect(failure == nil || failure == .keyUnavailable, "\(name)")
            if ["update", "remove", "removeAll", "check"].contains(name) { #expect(failure == .keyUnavailable) }
            if name != "rekey" {
                #expect(disk["vault"] == before["vault"], "\(name) changed the vault without its key")
            }
            device.fail(nil)
            #expect(device.state.withLock { $0.signing.count } == keys, "\(name) made or lost a key")
            // An explicit change of key is the one way that leads away from a device that is gone.
            let again =
                name == "rekey" ? opened : try await vault(on: disk, guardedBy: .requireHardware(device))
            for (secret, value) in Self.secrets {
                #expect(try await again.value(secret)?.value == Secret(value), "after \(name)")
            }
            if name != "rekey" { #expect(disk.names == before.names, "\(name) left something behind") }
        }
    }

    @Test("A device that answers with garbage makes no vault and spoils none")
    func garbage() async throws {
        let device = FakeDevice()
        device.state.withLock { $0.garbage = true }
        let disk = SimulatedDisk()
        #expect(await code { _ = try await vault(on: disk, guardedBy: .requireHardware(device)) } != nil)
        #expect(disk.names == [])
        #expect(device.state.withLock { $0.signing.isEmpty && $0.agreement.isEmpty })
        device.state.withLock { $0.garbage = false }
        try await Self.filled(disk, .requireHardware(device))
        let opened = try await vault(on: disk, guardedBy: .requireHardware(device))
        device.state.withLock { $0.garbage = true }
        #expect(await code { try await opened.update("one", to: Secret("x"), expected: .any) } == .keyUnavailable)
        #expect(await code { _ = try await vault(on: disk, guardedBy: .requireHardware(device)) } == .wrongKey)
        device.state.withLock { $0.garbage = false }
        #expect(try await vault(on: disk, guardedBy: .requireHardware(device)).value("one")?.value == Secret("1"))
    }

    @Test(
        "What a key provider says arrives as an error of its own",
        arguments: [
            (KeyProviderError.Code.unavailable, SecretStoreError.Code.keyUnavailable), (.wrongSecret, .wrongKey),
            (.lockedOut, .keyLocked), (.userAbsent, .keyUnavailable), (.keyLost, .keyLost), (.tampered, .tampered),
            (.newerFormat, .newerFormat), (.failed, .keyUnavailable),
        ])
    func errors(given: KeyProviderError.Code, due: SecretStoreError.Code) async throws {
        let device = Present()
        let disk = SimulatedDisk()
        try await Self.filled(disk, .requireHardware(device))
        device.base.fail(given)
        #expect(await code { _ = try await vault(on: disk, guardedBy: .requireHardware(device)) } == due)
    }
}

/// A device that says that it is available and then does not work.
private final class Present: KeyProvider {
    let base = FakeDevice()
    var kind: String { base.kind }
    var protection: KeyProtection { base.protection }
    var availability: KeyAvailability { .available }
    func keyNames() async throws -> [String] { try await base.keyNames() }
    func signingKey(named name: String) async throws -> (any SigningKey)? { try await base.signingKey(named: name) }
    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try await base.makeSigningKey(named: name, algorithm: algorithm)
    }
    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        try await base.agreementKey(named: name)
    }
    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        try await base.makeAgreementKey(named: name)
    }
    func removeKey(named name: String) async throws { try await base.removeKey(named: name) }
}
