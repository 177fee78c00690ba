#if PKCS11 && os(Linux)
import AssentCore
import AssentPeers
import CP11Kit
import Crypto
import Foundation
import Testing

@testable import AssentPlatform

@Suite("Modules and tokens that fail")
struct PKCS11FaultTests {
    let hsm: SoftHSM

    init() throws { hsm = try SoftHSM.shared.get() }

    @Test("A token that is pulled out is an error at once, and serves again when it is back")
    func removed() async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        let provider = module.provider(label)
        let key = try await provider.makeSigningKey(named: "key", algorithm: .es256)
        let agreement = try await provider.makeAgreementKey(named: "key")
        let peer = Array(P256.KeyAgreement.PrivateKey().publicKey.x963Representation)
        for code in [CKR_DEVICE_REMOVED, CKR_TOKEN_NOT_PRESENT] {
            try module.set(["sign": UInt(code), "derive": UInt(code)])
            let signing = try #require(await failure { _ = try await key.signature(for: [1]) })
            #expect(signing.code == .unavailable)
            #expect(signing.detail.contains("Insert"))
            #expect(await failure { _ = try await agreement.sharedSecret(with: peer) }?.code == .unavailable)
            try module.set(["slot-count": 0])
            #expect(await failure { _ = try await key.signature(for: [1]) }?.code == .unavailable)
            #expect(await provider.isAvailable == false)
            try module.set([:])
            #expect(try await key.signature(for: [1]).count == 64)
            #expect(await provider.isAvailable)
        }
    }

    @Test("A session that somebody else closed is opened again")
    func closedSession() async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        let key = try await module.provider(label).makeSigningKey(named: "key", algorithm: .es256)
        try module.set(["close-once": 1])
        #expect(try await key.signature(for: [1]).count == 64)
        try module.set(["sign": UInt(CKR_SESSION_HANDLE_INVALID)])
        #expect(await failure { _ = try await key.signature(for: [1]) }?.code == .unavailable)
    }

    @Test("A write-protected token serves its keys, and says why it makes none")
    func readOnly() async throws {
        let label = try hsm.makeToken()
        _ = try await hsm.provider(label).makeSigningKey(named: "key", algorithm: .es256)
        for fault in [["open-for-writing": UInt(CKR_TOKEN_WRITE_PROTECTED)], ["flags": UInt(CKF_WRITE_PROTECTED)]] {
            let module = try hsm.faulty()
            try module.set(fault)
            let provider = module.provider(label)
            let key = try #require(try await provider.signingKey(named: "key"))
            #expect(try await key.signature(for: [1]).count == 64)
            let making = try #require(await failure { _ = try await provider.makeAgreementKey(named: "new") })
            #expect(making.code == .unsupported)
            #expect(making.detail.contains("write-protected"))
            #expect(await failure { try await provider.removeKey(named: "key") }?.code == .unsupported)
        }
    }

    @Test("A full token says so and keeps what it has")
    func full() async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        let provider = module.provider(label)
        _ = try await provider.makeSigningKey(named: "key", algorithm: .es256)
        try module.set(["generate": UInt(CKR_DEVICE_MEMORY)])
        let error = try #require(
            await failure { _ = try await provider.makeSigningKey(named: "new", algorithm: .es256) })
        #expect(error.code == .failed)
        #expect(error.detail.contains("full"))
        #expect(try await provider.keyNames() == ["key"])
    }

    @Test("A token that makes keys which can be read is refused, and such a key does not stay")
    func readable() async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        try module.set(["readable": 1])
        let provider = module.provider(label)
        for making in [0, 1] {
            let error = await failure {
                if making == 0 {
                    _ = try await provider.makeSigningKey(named: "key", algorithm: .es256)
                } else {
                    _ = try await provider.makeAgreementKey(named: "key")
                }
            }
            #expect(error?.code == .tampered)
        }
        let objects = try hsm.withSession(label) { try $0.find([PKCS11Attribute(CKA_TOKEN, true)]).count }
        #expect(objects == 0)
    }

    @Test(
        "Answers that make no sense are refused, whatever their length says",
        arguments: [
            ["signature-length": 63], ["signature-length": 0], ["signature-length": 65], ["signature-length": .max],
            ["signature-byte": 0], ["signature-byte": 63], ["object-count": 65], ["object-count": .max],
        ] as [[String: UInt]])
    func garbage(_ fault: [String: UInt]) async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        let provider = module.provider(label)
        let key = try await provider.makeSigningKey(named: "key", algorithm: .es256)
        try module.set(fault)
        let error = await failure {
            _ = try await key.signature(for: [1])
            _ = try await provider.keyNames()
        }
        #expect(error?.code == .tampered)
        try module.set([:])
        #expect(try await key.signature(for: [1]).count == 64)
    }

    @Test("Lengths of attributes are bounded", arguments: [0, 2, 31, 4_097, 1 << 40, UInt.max - 1, .max])
    func attributeLengths(_ length: UInt) async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        _ = try await hsm.provider(label).makeAgreementKey(named: "key")
        try module.set(["attribute-length": length])
        do {
            // A token whose attributes cannot be read has no key of ours; it never has a wrong one.
            #expect(try await module.provider(label).agreementKey(named: "key") == nil)
        } catch let error as KeyProviderError {
            #expect(error.code == .tampered)
        }
    }

    @Test("A module that reports a million slots is refused", arguments: [1_025, 1 << 40, UInt.max])
    func slots(_ count: UInt) async throws {
        let module = try hsm.faulty()
        try module.set(["slot-count": count])
        #expect(await failure { _ = try await module.provider("any").keyNames() }?.code == .tampered)
    }

    @Test("A module that is missing, is not a module, or is of another version is named, with what to do")
    func modules() async throws {
        let directory = try TemporaryDirectory()
        let text = directory.path("text.so")
        try Data("#!/bin/sh\n".utf8).write(to: URL(filePath: text))
        let empty = directory.path("empty.so")
        try Data().write(to: URL(filePath: empty))
        let cases: [(path: String, code: KeyProviderError.Code)] = [
            (directory.path("none.so"), .unavailable), (text, .unavailable), (empty, .unavailable),
            (directory.path(""), .unavailable), ("/lib/x86_64-linux-gnu/libc.so.6", .unavailable),
            ("libsofthsm2.so", .invalidInput), ("", .invalidInput), ("../module.so", .invalidInput),
        ]
        for (path, code) in cases {
            let provider = PKCS11KeyProvider(module: path, token: "any", pin: nil)
            #expect(await failure { _ = try await provider.keyNames() }?.code == code, "\(path)")
            #expect(await provider.isAvailable == false)
        }
        let label = try hsm.makeToken()
        let faults: [([String: UInt], String)] = [
            (["version": 1], "PKCS#11 1."), (["version": 9], "PKCS#11 9."), (["information": 5], "what it speaks"),
            (["load": UInt(CKR_GENERAL_ERROR)], "not a PKCS#11 module"), (["initialize": 5], "does not start"),
        ]
        for (fault, text) in faults {
            let module = try hsm.faulty()
            try module.set(fault)
            let error = await failure { _ = try await module.provider(label).keyNames() }
            #expect(error?.code == .unavailable && error?.detail.contains(text) == true, "\(fault): \(error as Any)")
        }
    }

    @Test("A module that others can change is not loaded")
    func writableModule() async throws {
        let module = try hsm.faulty()
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: module.path)
        let error = try #require(await failure { _ = try await module.provider("any").keyNames() })
        #expect(error.code == .unavailable)
        #expect(error.detail.contains("chmod"))
    }

    @Test(
        "Each failure of a token has its own code and advice",
        arguments: [
            (CKR_SESSION_COUNT, KeyProviderError.Code.unavailable), (CKR_MECHANISM_INVALID, .unsupported),
            (CKR_KEY_FUNCTION_NOT_PERMITTED, .unsupported), (CKR_FUNCTION_REJECTED, .userAbsent),
            (CKR_DEVICE_ERROR, .failed), (CKR_GENERAL_ERROR, .failed), (0x8000_0007, .failed),
            (CKR_PIN_EXPIRED, .wrongSecret), (CKR_USER_ANOTHER_ALREADY_LOGGED_IN, .unavailable),
        ])
    func codes(_ result: CK_RV, _ code: KeyProviderError.Code) async throws {
        let label = try hsm.makeToken()
        let module = try hsm.faulty()
        let provider = module.provider(label)
        _ = try await provider.makeSigningKey(named: "key", algorithm: .es256)
        let key = try #require(try await provider.signingKey(named: "key"))
        try module.set(["sign": UInt(result)])
        #expect(await failure { _ = try await key.signature(for: [1]) }?.code == code)
    }
}
#endif
