package import AssentCore

/// An OTP key that the server gives to the device.
package struct OneTimeKey: MessagePart {
    /// Its name in the container.
    package let label: String
    /// The slot of the password that opens it.
    package let slot: PasswordSlot?
    /// The id of its policy.
    package let policy: String
    /// The `otpauth` URI with the secret.
    package let uri: Secret

    /// The longest URI.
    package static let uriLimit = 1024

    /// The content with these members; the reader checks their bounds.
    package init(
        label: String, slot: PasswordSlot? = nil, policy: String, uri: Secret
    ) {
        self.label = label
        self.slot = slot
        self.policy = policy
        self.uri = uri
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        label = try reader.label("label")
        slot = reader.has("slot") ? try reader.choice("slot") : nil
        policy = try reader.label("policy")
        uri = Secret(try reader.ascii("uri", 1...Self.uriLimit))
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "label": .string(label), "slot": slot.map { $0.json }, "policy": .string(policy),
            "uri": .string(uri.reveal()),
        ])
    }
}

/// The server's answer to an enrolment.
package struct Enrolled: ReplyContent {
    /// `tsp-enrolled+jwt`.
    package static let type = MessageType.enrolled

    /// What every reply has.
    package let head: SigningReplyHead
    /// Always unconfirmed.
    package let state: ContainerState
    /// The container's number, for the help desk.
    package let serial: String
    /// The container's name.
    package let name: String
    /// When the keys expire.
    package let expiresAt: Int
    /// From when the keys may be renewed.
    package let renewableFrom: Int
    /// To be sent back with `confirm`.
    package let echo: SigningNonce
    /// The handle key: recognises transaction ids that are meant for this container.
    package let handle: Secret
    /// OTP keys.
    package let otp: [OneTimeKey]

    /// The content with these members; the reader checks their bounds.
    package init(
        head: SigningReplyHead, state: ContainerState, serial: String, name: String, expiresAt: Int, renewableFrom: Int,
        echo: SigningNonce, handle: Secret, otp: [OneTimeKey]
    ) {
        self.head = head
        self.state = state
        self.serial = serial
        self.name = name
        self.expiresAt = expiresAt
        self.renewableFrom = renewableFrom
        self.echo = echo
        self.handle = handle
        self.otp = otp
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        head = try SigningReplyHead(reading: &reader)
        state = try reader.choice("state")
        serial = try reader.ascii("serial", 1...20)
        name = try reader.shown("name", 1...128)
        expiresAt = try reader.integer("exp")
        renewableFrom = try reader.integer("renew")
        echo = try reader.fixed("echo")
        handle = Secret(bytes: try reader.bytes("handle", count: 32))
        otp = try reader.objects("otp", 0...4)
        guard state == .unconfirmed else { throw .invalid("state", "is not UNCONFIRMED") }
        guard serial.utf8.allSatisfy(\.isASCIIDigit) else {
            throw .invalid("serial", "has other characters than digits")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        head.with([
            "state": state.json, "serial": .string(serial), "name": .string(name), "exp": .integer(expiresAt),
            "renew": .integer(renewableFrom), "echo": echo.json,
            "handle": .string(Base64URL.encode(handle.revealBytes())), "otp": otp.jsonArray(\.json),
        ])
    }
}

/// The server's statement about an enrolment.
package struct EnrolmentRecord: SignedContent {
    /// `tsp-record+jwt`.
    package static let type = MessageType.record

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// When the container became active with these keys.
    package let issuedAt: Int
    /// The invite.
    package let pid: SigningID
    /// The user's id.
    package let sub: String
    /// Counts the key sets of this container.
    package let sequence: Int
    /// The hash of the record before.
    package let previous: SigningHash?
    /// The user's name.
    package let user: String
    /// The identity key at that time.
    package let identity: KeyThumbprint
    /// The hash of the device's signed key list.
    package let enrol: SigningHash
    /// The hash of the transcript.
    package let transcript: SigningHash
    /// Whether the user typed digits.
    package let commit: CommitMode
    /// What the server relied on.
    package let by: [RecordGround]
    /// From when on the container may approve.
    package let approvalsFrom: Int
    /// The keys.
    package let keys: [KeyThumbprint]

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, issuedAt: Int, pid: SigningID, sub: String, sequence: Int,
        previous: SigningHash? = nil, user: String, identity: KeyThumbprint, enrol: SigningHash,
        transcript: SigningHash, commit: CommitMode, by: [RecordGround], approvalsFrom: Int, keys: [KeyThumbprint]
    ) {
        self.issuer = issuer
        self.did = did
        self.issuedAt = issuedAt
        self.pid = pid
        self.sub = sub
        self.sequence = sequence
        self.previous = previous
        self.user = user
        self.identity = identity
        self.enrol = enrol
        self.transcript = transcript
        self.commit = commit
        self.by = by
        self.approvalsFrom = approvalsFrom
        self.keys = keys
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        did = try reader.fixed("aud")
        issuedAt = try reader.integer("iat")
        pid = try reader.fixed("pid")
        sub = try reader.ascii("sub", 1...64)
        sequence = try reader.integer("seq", 0...1000)
        previous = reader.has("prev") ? try reader.fixed("prev") : nil
        user = try reader.shown("user", 1...64)
        identity = try reader.fixed("identity")
        enrol = try reader.fixed("enrol")
        transcript = try reader.fixed("transcript")
        commit = try reader.choice("commit")
        by = try reader.choices("by", 1...3)
        approvalsFrom = try reader.integer("approvals")
        keys = try reader.thumbprints("keys", 2...8)
        guard (sequence == 0) == (previous == nil) else {
            throw .invalid("prev", "is missing, or there in the first record")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "aud": did.json, "iat": .integer(issuedAt), "pid": pid.json,
            "sub": .string(sub), "seq": .integer(sequence), "prev": previous.map { $0.json }, "user": .string(user),
            "identity": identity.json, "enrol": enrol.json, "transcript": transcript.json, "commit": commit.json,
            "by": by.jsonArray(\.json), "approvals": .integer(approvalsFrom), "keys": keys.jsonArray(\.json),
        ])
    }
}

/// What a server relied on when it accepted keys.
package enum RecordGround: String, Hashable, Sendable, CaseIterable {
    /// An invite of the user's own.
    case invite
    /// An invite by an administrator.
    case administrator
    /// The old device key's endorsement.
    case device
    /// The endorsement of an old `sign` or `auth` key.
    case sign
    /// A reset after a forgotten PIN.
    case reset
}
