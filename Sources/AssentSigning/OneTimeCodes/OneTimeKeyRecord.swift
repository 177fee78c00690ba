import AssentCore
import AssentOTP
import AssentSigningProtocol

/// A key for one-time codes that the server has given to a container.
struct OneTimeKeyRecord: ShapedPart {
    var format: Int
    var did: SigningID
    var label: String
    /// The key as an `otpauth` URI.
    var uri: Secret
    /// The next counter value, where codes are made by a counter.
    var counter: Int

    static let shape = MessageShape<Self>(Self.init(format:did:label:uri:counter:)) {
        Member("format", \.format, .integer(1...1))
        Member("did", \.did)
        Member("label", \.label, .label)
        Member("uri", \.uri, .secret(ascii: 1...OneTimeKey.uriLimit))
        Member("counter", \.counter)
    }

    /// What makes its codes.
    ///
    /// - Throws: `OTPError` when the server's URI is none.
    func generator() throws(OTPError) -> Generator {
        let text = uri.reveal()
        if text.utf8.starts(with: "otpauth://ocra/".utf8) { return .challenge(try OCRAAuthURI(text).ocra()) }
        let account = try OTPAuthURI(text)
        if let totp = try account.totp() { return .time(totp) }
        guard let hotp = try account.hotp() else { throw OTPError(.wrongScheme) }
        return .counter(hotp)
    }

    /// The counter value with which the server's URI begins.
    static func firstCounter(_ uri: Secret) -> Int {
        guard case .counter(let first)? = try? OTPAuthURI(uri.reveal()).moving else { return 0 }
        return Int(clamping: first)
    }

    /// How codes are made.
    enum Generator {
        case time(TOTP)
        case counter(HOTP)
        case challenge(OCRA)
    }
}

extension OneTimeKeyRecord {
    /// A key that has not made a code.
    init(did: SigningID, label: String, uri: Secret, counter: Int) {
        self.init(format: 1, did: did, label: label, uri: uri, counter: counter)
    }
}

extension ContainerStore {
    private static let oneTimeKeys = "signing.otp."

    private static func name(_ did: SigningID, _ label: String) -> String { "\(oneTimeKeys)\(did.text).\(label)" }

    /// Keeps a key; one that is there already stays, with its counter.
    func keep(_ key: OneTimeKeyRecord) async throws {
        let name = Self.name(key.did, key.label)
        guard try await store.value(name) == nil else { return }
        try await store.update(name, to: Secret(bytes: key.encoded()), expected: .absent)
    }

    /// The keys of a container, sorted by label.
    func oneTimeKeys(of did: SigningID) async throws -> [OneTimeKeyRecord] {
        var records: [OneTimeKeyRecord] = []
        let prefix = "\(Self.oneTimeKeys)\(did.text)."
        for name in try await store.names().sorted() where name.utf8.starts(with: prefix.utf8) {
            guard let stored = try await store.value(name) else { continue }
            records.append(try parse(stored.value))
        }
        return records
    }

    /// Takes the next counter value of a key: no code is shown before it is stored that it was.
    func takeCounter(_ did: SigningID, _ label: String) async throws -> Int {
        let name = Self.name(did, label)
        for _ in 0..<16 {
            guard let stored = try await store.value(name) else { throw SigningError(.credentialsLost) }
            var record: OneTimeKeyRecord = try parse(stored.value)
            let counter = record.counter
            record.counter += 1
            do {
                try await store.update(
                    name, to: Secret(bytes: record.encoded()), expected: .exactly(stored.version))
                return counter
            } catch let error as SecretStoreError where error.code == .versionMismatch {
                continue
            }
        }
        throw SecretStoreError(.busy, "Others keep taking codes.")
    }

    func removeOneTimeKeys(of did: SigningID) async throws {
        for key in try await oneTimeKeys(of: did) {
            try await store.update(Self.name(did, key.label), to: nil, expected: .any)
        }
    }
}
