#if PKCS11 && os(Linux)
import AssentCore
import AssentTesting
import CP11Kit
import Crypto
import Foundation
import Testing

@testable import AssentPlatform

@Suite("Keys in a PKCS#11 token")
struct PKCS11Tests {
    let hsm: SoftHSM

    init() throws { hsm = try SoftHSM.shared.get() }

    @Test("A token keeps the contract of key providers", arguments: KeyProviderContract.rules)
    func contract(_ rule: KeyProviderContract.Rule) async throws {
        let label = try hsm.makeToken()
        try await rule.check { [hsm] in hsm.provider(label) }
    }

    @Test("A private key cannot be read out of the token, and says so")
    func unreadable() async throws {
        let label = try hsm.makeToken()
        _ = try await hsm.provider(label).makeSigningKey(named: "key", algorithm: .es256)
        _ = try await hsm.provider(label).makeAgreementKey(named: "key")
        try hsm.withSession(label) { session in
            let keys = try session.find([PKCS11Attribute(CKA_CLASS, number: CKO_PRIVATE_KEY)])
            #expect(keys.count == 2)
            for key in keys {
                #expect(try session.value(CKA_VALUE, of: key) == nil)
                #expect(try session.flag(CKA_SENSITIVE, of: key) == true)
                #expect(try session.flag(CKA_EXTRACTABLE, of: key) == false)
                #expect(try session.flag(CKA_NEVER_EXTRACTABLE, of: key) == true)
            }
        }
    }

    @Test("Without the PIN no key is visible, and the PIN is in no description")
    func needsPIN() async throws {
        let label = try hsm.makeToken()
        _ = try await hsm.provider(label).makeSigningKey(named: "key", algorithm: .es256)
        let keys = try hsm.withSession(label, pin: nil) { session in
            try session.find([PKCS11Attribute(CKA_CLASS, number: CKO_PRIVATE_KEY)])
        }
        #expect(keys.isEmpty)
        let error = try #require(await failure { _ = try await hsm.provider(label, pin: nil).keyNames() })
        #expect(error.code == .userAbsent)
        let wrong = hsm.provider(label, pin: KnownSecret(Secret("999999")))
        let refused = try #require(await failure { _ = try await wrong.keyNames() })
        #expect(refused.code == .wrongSecret)
        #expect(!"\(refused) \(String(reflecting: refused)) \(String(reflecting: wrong))".contains("999999"))
    }

    @Test("A wrong PIN is asked for again, and one that is always the same is tried once")
    func wrongPIN() async throws {
        let label = try hsm.makeToken()
        let patient = PINs("000000", "271828")
        _ = try await hsm.provider(label, pin: patient).makeSigningKey(named: "key", algorithm: .es256)
        #expect(patient.requests.map(\.isRetry) == [false, true])
        #expect(patient.requests.map(\.providerName) == [label, label])

        let declined = PINs("000000")
        #expect(await failure { _ = try await hsm.provider(label, pin: declined).keyNames() }?.code == .wrongSecret)
        let stubborn = PINs("000000", "000001", "000002", "000003")
        #expect(await failure { _ = try await hsm.provider(label, pin: stubborn).keyNames() }?.code == .wrongSecret)
        #expect(stubborn.requests.count == 3)
        for pin in ["", String(repeating: "1", count: 256)] {
            let error = await failure { _ = try await hsm.provider(label, pin: PINs(pin)).keyNames() }
            #expect(error?.code == .invalidInput)
        }
        let later = try await hsm.provider(label).signingKey(named: "key")
        #expect(later != nil)
    }

    @Test("A token that locks says so, how many tries are left, and how to unlock it")
    func lockOut() async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        try module.set(["flags": UInt(CKF_USER_PIN_FINAL_TRY)])
        let pins = PINs("000000")
        let last = try #require(await failure { _ = try await module.provider(label, pin: pins).keyNames() })
        #expect(last.code == .wrongSecret)
        #expect(last.attemptsLeft == 1)
        #expect(pins.requests.first?.attemptsLeft == 1)

        try module.set(["login": UInt(CKR_PIN_LOCKED)])
        let locking = try #require(await failure { _ = try await module.provider(label).keyNames() })
        #expect(locking.code == .lockedOut)
        #expect(locking.attemptsLeft == 0)
        #expect(locking.detail.contains("PUK"))

        try module.set(["flags": UInt(CKF_USER_PIN_LOCKED)])
        let asked = PINs("271828")
        let provider = module.provider(label, pin: asked)
        #expect(await failure { _ = try await provider.keyNames() }?.code == .lockedOut)
        #expect(asked.requests.isEmpty, "a locked token needs no PIN")
        guard case .lockedOut(let reason) = await provider.availability else {
            Issue.record("a locked token does not say so")
            return
        }
        #expect(reason.contains("locked"))
    }

    @Test("A token whose PIN was never set says so")
    func noPIN() async throws {
        let label = try hsm.makeToken(pin: nil)
        #expect(await hsm.provider(label).isAvailable == false)
        #expect(await failure { _ = try await hsm.provider(label).keyNames() }?.code == .unavailable)
    }

    @Test("A token that is not there is an error, and it is found by label, never guessed")
    func missingToken() async throws {
        let label = try hsm.makeToken()
        for wrong in [label + "x", "", String(label.dropLast()), label.uppercased()] {
            let provider = hsm.provider(wrong)
            #expect(await provider.isAvailable == false)
            #expect(await failure { _ = try await provider.signingKey(named: "key") }?.code == .unavailable)
            #expect(await failure { _ = try await provider.makeAgreementKey(named: "key") }?.code == .unavailable)
        }
        let other = PKCS11KeyProvider(module: hsm.module, token: label, serial: "no such", pin: nil)
        #expect(await other.isAvailable == false)
    }

    @Test("A key that somebody else removed is lost, and the others stay")
    func lostKey() async throws {
        let label = try hsm.makeToken()
        let provider = hsm.provider(label)
        let lost = try await provider.makeSigningKey(named: "lost", algorithm: .es256)
        let stays = try await provider.makeSigningKey(named: "stays", algorithm: .es256)
        try await hsm.provider(label).removeKey(named: "lost")
        #expect(await failure { _ = try await lost.signature(for: [1]) }?.code == .keyLost)
        #expect(try await stays.signature(for: [1]).count == 64)
    }

    @Test("A public key that is not the private key's is found out")
    func exchangedPublicKey() async throws {
        let label = try hsm.makeToken()
        let provider = hsm.provider(label)
        for use in [PKCS11KeyUse.signing, .agreement] {
            let name = "key-\(use.rawValue)"
            switch use {
            case .signing: _ = try await provider.makeSigningKey(named: name, algorithm: .es256)
            case .agreement: _ = try await provider.makeAgreementKey(named: name)
            }
            // Public objects can be exchanged by anybody who reaches the token, without its PIN.
            try hsm.withSession(label) { session in
                let query = [PKCS11Attribute(CKA_CLASS, number: CKO_PUBLIC_KEY), PKCS11Attribute(CKA_LABEL, name)]
                let old = try #require(try session.find(query).first)
                let id = try #require(try session.value(CKA_ID, of: old))
                try session.destroy(old)
                let point = Array(P256.Signing.PrivateKey().publicKey.x963Representation)
                let planted = [
                    PKCS11Attribute(CKA_CLASS, number: CKO_PUBLIC_KEY), PKCS11Attribute(CKA_KEY_TYPE, number: CKK_EC),
                    PKCS11Attribute(CKA_TOKEN, true), PKCS11Attribute(CKA_PRIVATE, false),
                    PKCS11Attribute(CKA_LABEL, name), PKCS11Attribute(CKA_ID, id),
                    PKCS11Attribute(CKA_EC_PARAMS, PKCS11Session.p256), PKCS11Attribute(CKA_EC_POINT, [4, 65] + point),
                ]
                var object: CK_OBJECT_HANDLE = 0
                try planted.withTemplate { template, count in
                    try session.module.check(
                        "planting",
                        try session.module.function(\.C_CreateObject)(session.handle, template, count, &object))
                }
            }
            let error = await failure {
                switch use {
                case .signing: _ = try await provider.signingKey(named: name)
                case .agreement: _ = try await provider.agreementKey(named: name)
                }
            }
            #expect(error?.code == .tampered)
        }
    }

    @Test("Keys that another program made are used by their CKA_ID, listed by our name, and never removed")
    func existingKeys() async throws {
        let label = try hsm.makeToken()
        let id: [UInt8] = [3]
        try hsm.withSession(label) { session in
            try session.generate(name: "SIGN key", id: id, use: .signing)
        }
        let provider = hsm.provider(label, existing: ["piv-sign": id, "absent": [9]])
        #expect(try await hsm.provider(label).keyNames() == [])
        #expect(try await provider.keyNames() == ["piv-sign"])
        let key = try #require(try await provider.signingKey(named: "piv-sign"))
        #expect(try await key.signature(for: [1]).count == 64)
        #expect(try await provider.signingKey(named: "absent") == nil)
        #expect(try await provider.agreementKey(named: "piv-sign") == nil)
        #expect(await failure { try await provider.removeKey(named: "piv-sign") }?.code == .unsupported)
        let again = await failure { _ = try await provider.makeSigningKey(named: "piv-sign", algorithm: .es256) }
        #expect(again?.code == .keyExists)
    }
}
#endif
