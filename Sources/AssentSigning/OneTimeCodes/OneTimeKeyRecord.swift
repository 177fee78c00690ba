import AssentCore
import AssentOTP
import AssentSigningProtocol

/// A key for one-time codes that the server has given to a container.
struct OneTimeKeyRecord: MessagePart {
    /// The form of this record.
    var format: Int
    /// The container.
    var did: SigningID
    /// The key's name in the container.
    var label: String
    /// The key as an `otpauth` URI.
    var uri: Secret
    /// The next counter value, where codes are made by a counter.
    var counter: Int

    /// The content with these members; the reader checks their bounds.
    init(did: SigningID, label: String, uri: Secret, counter: Int) {
        format = 1
        self.did = did
        self.label = label
        self.uri = uri
        self.counter = counter
    }

    /// Reads the members and checks their bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        format = try reader.integer("format", 1...1)
        did = try reader.fixed("did")
        label = try reader.label("label")
        uri = Secret(try reader.ascii("uri", 1...OneTimeKey.uriLimit))
        counter = try reader.integer("counter")
    }

    /// The members, in the order of the specification's example.
    var members: JSONObject {
        [
            "format": .integer(format), "did": .string(did.text), "label": .string(label),
            "uri": .string(uri.reveal()), "counter": .integer(counter),
        ]
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
