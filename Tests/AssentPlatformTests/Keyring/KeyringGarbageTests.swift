#if Keyring && os(Linux)
import AssentCore
import CKeyutils
import Foundation
import Testing

@testable import AssentPlatform

@Suite("What other programs of the user do to a store in the kernel's keyring")
struct KeyringGarbageTests {
    enum Damage: String, CaseIterable, Sendable {
        case emptyRecord, noHead, headCut, headLong, headText, headOfNextVersion, hugeCount, highestVersion
        case noPart, partChanged, partCut, partLong, partOfFormerValue, recordOfAnotherName
    }

    @Test(
        "A damaged secret is an error and never a value, the others stay, and it can be overwritten",
        arguments: Damage.allCases)
    func damage(_ damage: Damage) async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        try await store.update("name", to: Secret("former"), expected: .absent)
        var former: [UInt8] = []
        try keyring.inKey("0", of: "name") { former = try #require(try $0.payload(32 + 6)) }
        try await store.update("name", to: Secret("newest"), expected: .exactly(1))
        try await store.update("other", to: Secret("oother"), expected: .absent)
        try Self.plant(damage, in: keyring, former: former)
        #expect(await storeCode { _ = try await store.value("name") } == .tampered)
        #expect(try await store.value("other")?.value == Secret("oother"))
        #expect(try await store.names() == ["name", "other"])
        #expect(await storeCode { try await store.update("name", to: Secret("x"), expected: .absent) } != nil)
        let version = try await store.update("name", to: Secret("again"), expected: .any)
        #expect(version > 2)
        #expect(try await store.value("name")?.value == Secret("again"))
    }

    private static func plant(_ damage: Damage, in keyring: TestKeyring, former: [UInt8]) throws {
        func change(_ description: String, _ body: (inout [UInt8]) -> Void) throws {
            let count = description == "head" ? KeyringRecord.Head.length : 32 + 6
            try keyring.inKey(description, of: "name") { key in
                var bytes = try #require(try key.payload(count))
                body(&bytes)
                try key.update(bytes)
            }
        }
        func drop(_ description: String) throws {
            try keyring.inRecord("name") { record in
                try keyring.inKey(description, of: "name") { try $0.unlink(from: record) }
            }
        }
        switch damage {
        case .emptyRecord:
            try keyring.inStore { store, _ in
                _ = try KernelKey.add(.keyring, KeyringRecord.description(of: "name"), to: store)
            }
        case .noHead: try drop("head")
        case .headCut: try change("head") { $0.removeLast() }
        case .headLong: try change("head") { $0.append(0) }
        case .headText: try change("head") { $0 = [UInt8](repeating: 65, count: $0.count) }
        case .headOfNextVersion: try change("head") { $0[15] = 3 }
        case .hugeCount: try change("head") { $0.replaceSubrange(16..<20, with: [255, 255, 255, 255]) }
        case .highestVersion: try change("head") { $0.replaceSubrange(8..<16, with: [UInt8](repeating: 255, count: 8)) }
        case .noPart: try drop("0")
        case .partChanged: try change("0") { $0[37] ^= 1 }
        case .partCut: try change("0") { $0.removeLast() }
        case .partLong: try change("0") { $0.append(0) }
        case .partOfFormerValue: try change("0") { $0 = former }
        case .recordOfAnotherName:
            try keyring.inRecord("name") { record in
                for part in ["head", "0"] { try keyring.inKey(part, of: "other") { try $0.link(into: record) } }
            }
        }
    }

    @Test("A keyring of our name that others may use, or that is not ours, is refused and kept as it is")
    func foreignStore() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        // As `keyctl newring` makes it: the user, and not only who possesses it, sees it.
        let serial = add_key("keyring", keyring.description, nil, 0, KEY_SPEC_USER_KEYRING)
        #expect(serial > 0)
        #expect(await storeCode { _ = try await store.value("name") } == .notPermitted)
        #expect(await storeCode { try await store.update("name", to: Secret("x"), expected: .any) } == .notPermitted)
        #expect(await storeCode { try await store.removeAll() } == .notPermitted)
        #expect(keyctl_setperm(serial, KernelKey.possessorOnly) == 0)
        #expect(try await store.value("name") == nil)
        #expect(await storeCode { try await store.update("name", to: Secret("x"), expected: .any) } == .tampered)
        try await store.removeAll()
        #expect(try await store.update("name", to: Secret("x"), expected: .absent) == 1)
    }

    @Test("Other keys in the store are not listed as secrets, and one deeper inside is not found")
    func strangers() async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        try await store.update("name", to: Secret("1"), expected: .absent)
        try keyring.inStore { ring, _ in
            for (kind, text) in [
                (KernelKey.Kind.user, "=bmFtZQ"), (.keyring, "=!"), (.keyring, "name"), (.keyring, "="),
            ] {
                _ = try "x".utf8CString.withUnsafeBytes { bytes in
                    try KernelKey.add(
                        kind, text, kind == .user ? .init(rebasing: bytes[..<1]) : .init(start: nil, count: 0), to: ring
                    )
                }
            }
            let inner = try #require(try ring.find(.keyring, "name", into: .thread))
            defer { inner.unlinkQuietly(from: .thread) }
            _ = try KernelKey.add(.keyring, KeyringRecord.description(of: "deep"), to: inner)
        }
        #expect(try await store.names() == ["name"])
        #expect(try await store.value("name")?.value == Secret("1"))
        #expect(try await store.value("deep") == nil)
        #expect(try await store.update("deep", to: Secret("2"), expected: .absent) == 1)
    }

    @Test(
        "Versions that make no sense stop changes, not reading",
        arguments: [[], [1], [UInt8](repeating: 255, count: 24)])
    func damagedVersions(_ bytes: [UInt8]) async throws {
        let keyring = try TestKeyring()
        let store = try keyring.open()
        try await store.update("name", to: Secret("1"), expected: .absent)
        try keyring.inStore { ring, _ in
            let key = try #require(try ring.find(.user, "versions", into: .thread))
            defer { key.unlinkQuietly(from: .thread) }
            if bytes.isEmpty { try key.unlink(from: ring) } else { try key.update(bytes) }
        }
        #expect(await storeCode { try await store.update("name", to: Secret("2"), expected: .any) } == .tampered)
        #expect(try await store.value("name")?.value == Secret("1"))
        try await store.removeAll()
        #expect(try await store.names() == [])
        try await store.update("name", to: Secret("2"), expected: .absent)
    }
}
#endif
