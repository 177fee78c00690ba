#if TPM && os(Linux)
import AssentCore
import AssentPeers
import AssentTesting
import Crypto
import Foundation
import Testing

@testable import AssentPlatform

@Suite("Keys in a TPM 2.0")
struct TPMTests {
    @Test("A TPM with a PIN keeps the contract of key providers", arguments: KeyProviderContract.rules)
    func contract(_ rule: KeyProviderContract.Rule) async throws {
        let tpm = try SoftTPM()
        try await rule.check { tpm.provider() }
    }

    @Test("A TPM without a PIN keeps it too", arguments: KeyProviderContract.rules)
    func contractWithoutPIN(_ rule: KeyProviderContract.Rule) async throws {
        let tpm = try SoftTPM()
        try await rule.check { tpm.provider(nil) }
    }

    @Test("Keys and counters outlive a restart of the TPM")
    func restart() async throws {
        let tpm = try SoftTPM()
        let key = try await tpm.provider().makeSigningKey(named: "key", algorithm: .es256)
        let counter = try #require(try await tpm.provider().makeRollbackCounter(named: "vault"))
        let number = try await counter.increment()
        tpm.stop()
        #expect(await tpm.provider().isAvailable == false)
        #expect(await failure { _ = try await key.signature(for: [1]) }?.code == .unavailable)
        #expect(await failure { _ = try await counter.value() }?.code == .unavailable)
        try tpm.start()
        let found = try #require(try await tpm.provider().signingKey(named: "key"))
        #expect(found.publicKeyInfo == key.publicKeyInfo)
        #expect(try await key.signature(for: [1]).count == 64)
        #expect(try await counter.value() == number)
    }

    @Test(
        "A wrong PIN says how many tries are left, then the TPM locks and says for how long; keys without a PIN go on")
    func lockOut() async throws {
        let tpm = try SoftTPM()
        _ = try await tpm.provider().makeSigningKey(named: "key", algorithm: .es256)
        let open = try await tpm.provider(nil, keys: tpm.directory.url.appending(path: "open"))
            .makeSigningKey(named: "open", algorithm: .es256)
        var left: [Int?] = []
        var code: KeyProviderError.Code?
        for _ in 0..<10 where code != .lockedOut {
            let wrong = tpm.provider(KnownSecret(Secret("000000")))
            let error = await failure { _ = try await wrong.signingKey(named: "key") }
            code = error?.code
            left.append(error?.attemptsLeft)
            #expect(error?.code == .wrongSecret || error?.code == .lockedOut)
        }
        #expect(code == .lockedOut)
        #expect(left.last == 0)
        #expect(left == left.sorted { ($0 ?? 0) > ($1 ?? 0) })
        let right = try #require(await failure { _ = try await tpm.provider().signingKey(named: "key") })
        #expect(right.code == .lockedOut, "the right PIN must not help while the TPM is locked")
        #expect(right.detail.contains("seconds"))
        #expect(await tpm.provider().isAvailable == false)
        #expect(try await open.signature(for: [1]).count == 64)
        try tpm.tool("tpm2_dictionarylockout", ["--clear-lockout"])
        #expect(try await tpm.provider().signingKey(named: "key") != nil)
    }

    @Test("A wrong PIN is asked for again, a cancelled question is an error, and the PIN is in no file and no text")
    func pins() async throws {
        let tpm = try SoftTPM()
        let chosen = PINs("correct battery")
        let provider = tpm.provider(chosen)
        _ = try await provider.makeSigningKey(named: "key", algorithm: .es256)
        _ = try await provider.makeAgreementKey(named: "key")
        #expect(chosen.requests.map(\.kind) == [.newPIN])
        let patient = PINs("wrong", "correct battery")
        _ = try await tpm.provider(patient).makeSigningKey(named: "another", algorithm: .es256)
        #expect(patient.requests.map(\.kind) == [.pin, .pin])
        #expect(patient.requests.map(\.isRetry) == [false, true])
        #expect(patient.requests.last?.attemptsLeft != nil)
        let wrong = try #require(
            await failure { _ = try await tpm.provider(PINs("wrong horse")).signingKey(named: "key") })
        #expect(wrong.code == .wrongSecret)
        #expect(await failure { _ = try await tpm.provider(PINs()).signingKey(named: "key") }?.code == .userAbsent)
        #expect(!"\(wrong) \(String(reflecting: provider))".contains("horse"))
        let everything = String(decoding: tpm.directory.bytes(), as: UTF8.self)
        #expect(!everything.contains("correct battery"))
    }

    @Test("A file that was changed anywhere, cut off, or exchanged is refused, and the others stay")
    func tampering() async throws {
        let tpm = try SoftTPM()
        let provider = tpm.provider()
        let key = try await provider.makeAgreementKey(named: "key")
        let other = try await provider.makeAgreementKey(named: "other")
        let file = tpm.keys.appending(path: "key.agree.tpm")
        let good = try Data(contentsOf: file)
        var bad = stride(from: 0, to: good.count, by: 7).map { index in
            var changed = good
            changed[index] ^= 1
            return changed
        }
        bad += [0, 1, 5, 6, 7, 100, good.count - 1].map { good.prefix($0) }
        bad += [good + [0], Data(repeating: 0xFF, count: 4_096)]
        for content in bad {
            try content.write(to: file)
            let error = try #require(await failure { _ = try await key.sharedSecret(with: other.publicPoint) })
            #expect([.tampered, .newerFormat, .keyLost].contains(error.code), "\(error)")
            #expect(await failure { _ = try await provider.agreementKey(named: "key") } != nil)
        }
        try Data(contentsOf: tpm.keys.appending(path: "other.agree.tpm")).write(to: file)
        #expect(await failure { _ = try await key.sharedSecret(with: other.publicPoint) }?.code == .tampered)
        try Data(repeating: 1, count: 5_000).write(to: file)
        #expect(await failure { _ = try await key.sharedSecret(with: other.publicPoint) }?.code == .unavailable)
        #expect(try await other.sharedSecret(with: key.publicPoint).count == 32)
        try good.write(to: file)
        #expect(try await key.sharedSecret(with: other.publicPoint).count == 32)
    }

    @Test("Another's key with another PIN, put in a key's place, does not answer to the user's PIN")
    func planted() async throws {
        let tpm = try SoftTPM()
        _ = try await tpm.provider().makeAgreementKey(named: "key")
        let theirs = tpm.directory.url.appending(path: "theirs")
        for presence in [KnownSecret(Secret("314159")), nil] {
            _ = try await tpm.provider(presence, keys: theirs).makeAgreementKey(named: "key")
            let file = tpm.keys.appending(path: "key.agree.tpm")
            try Data(contentsOf: theirs.appending(path: "key.agree.tpm")).write(to: file)
            let error = await failure { _ = try await tpm.provider().agreementKey(named: "key") }
            #expect(error?.code == (presence == nil ? .tampered : .wrongSecret))
            try FileManager.default.removeItem(at: theirs)
        }
    }

    @Test("Keys of another TPM, or of this one before it was cleared, are lost, and it says so")
    func otherTPM() async throws {
        let tpm = try SoftTPM()
        let key = try await tpm.provider().makeSigningKey(named: "key", algorithm: .es256)
        let counter = try #require(try await tpm.provider().makeRollbackCounter(named: "vault"))
        try tpm.clear()
        #expect(await failure { _ = try await key.signature(for: [1]) }?.code == .keyLost)
        #expect(await failure { _ = try await tpm.provider().signingKey(named: "key") }?.code == .keyLost)
        #expect(await failure { _ = try await counter.value() }?.code == .keyLost)
        #expect(await failure { _ = try await counter.increment() }?.code == .keyLost)
        #expect(try await tpm.provider().rollbackCounter(named: "vault") == nil)
        try await tpm.provider().removeKey(named: "key")
        _ = try await tpm.provider().makeSigningKey(named: "key", algorithm: .es256)
    }

    @Test("A counter that was removed and made again never has a number that it had before, whoever did it")
    func counterOfOthers() async throws {
        let tpm = try SoftTPM()
        let counter = try #require(try await tpm.provider().makeRollbackCounter(named: "vault"))
        var last = try await counter.value()
        for _ in 0..<3 { last = try await counter.increment() }
        // Another directory is another place for keys, and the same TPM.
        let others = tpm.provider(nil, keys: tpm.directory.url.appending(path: "others"))
        #expect(await failure { _ = try await others.makeRollbackCounter(named: "vault") }?.code == .keyExists)
        #expect(try await others.rollbackCounter(named: "vault")?.value() == last)
        try await others.removeKey(named: "vault")
        #expect(await failure { _ = try await counter.value() }?.code == .keyLost)
        let again = try #require(try await others.makeRollbackCounter(named: "vault"))
        #expect(try await again.value() > last)
    }

    @Test(
        "A TPM that is missing is an error that says how to get it",
        arguments: [
            "device:/nonexistent/tpm", "swtpm:path=/nonexistent/socket", "nonsense", "", "device:/dev/null",
            "swtpm:host=127.0.0.1,port=1", String(repeating: "x", count: 100_000),
        ])
    func missing(_ tcti: String) async throws {
        let directory = try TemporaryDirectory()
        let provider = TPMKeyProvider(directory: directory.url, tcti: tcti, pin: nil)
        #expect(await provider.isAvailable == false)
        let error = try #require(
            await failure { _ = try await provider.makeSigningKey(named: "key", algorithm: .es256) })
        #expect([.unavailable, .tampered].contains(error.code), "\(error)")
        #expect(try await provider.keyNames() == [])
        #expect(directory.bytes().isEmpty, "no other kind of key may take its place")
    }

    @Test("Below a persistent storage key, which must be there")
    func persistent() async throws {
        let tpm = try SoftTPM()
        let context = tpm.directory.path("root.ctx")
        try tpm.tool("tpm2_createprimary", ["-C", "o", "-G", "ecc", "-c", context])
        try tpm.tool("tpm2_flushcontext", ["-t"])
        try tpm.tool("tpm2_evictcontrol", ["-C", "o", "-c", context, "0x81000001"])
        // Without a resource manager, the tools leave in the TPM what they have loaded.
        try tpm.tool("tpm2_flushcontext", ["-t"])
        let provider = TPMKeyProvider(
            directory: tpm.keys, tcti: tpm.tcti, parent: .persistent(0x8100_0001), pin: KnownSecret(SoftTPM.pin))
        let key = try await provider.makeSigningKey(named: "key", algorithm: .es256)
        #expect(try await key.signature(for: [1]).count == 64)
        let none = TPMKeyProvider(
            directory: tpm.keys, tcti: tpm.tcti, parent: .persistent(0x8100_0002), pin: KnownSecret(SoftTPM.pin))
        #expect(await none.isAvailable == false)
    }

    @Test("The error for an owner with a password is not that of a wrong PIN")
    func ownerPassword() async throws {
        let tpm = try SoftTPM()
        try tpm.tool("tpm2_changeauth", ["-c", "owner", "of the owner"])
        let error = await failure { _ = try await tpm.provider().makeSigningKey(named: "key", algorithm: .es256) }
        #expect(error?.code == .unsupported)
    }
}
#endif
