package import AssentCore

/// An OTP key that the server gives to the device.
package struct OneTimeKey: ShapedPart {
    package let label: String
    package let slot: PasswordSlot?
    package let policy: String
    /// The `otpauth` URI with the secret.
    package let uri: Secret

    package static let uriLimit = 1024

    package init(label: String, slot: PasswordSlot? = nil, policy: String, uri: Secret) {
        (self.label, self.slot, self.policy, self.uri) = (label, slot, policy, uri)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("label", \.label, .label)
        Member(optional: "slot", \.slot)
        Member("policy", \.policy, .label)
        Member("uri", \.uri, .secret(ascii: 1...Self.uriLimit))
    }
}

/// The server's answer to an enrolment.
package struct Enrolled: ReplyContent {
    package static let type = MessageType.enrolled
    package let head: SigningReplyHead
    /// Always unconfirmed.
    package let state: ContainerState
    /// The container's number, for the help desk.
    package let serial: String
    package let name: String
    package let expiresAt: Int
    package let renewableFrom: Int
    /// To be sent back with `confirm`.
    package let echo: SigningNonce
    /// The handle key: recognises transaction ids that are meant for this container.
    package let handle: Secret
    package let otp: [OneTimeKey]

    package init(
        head: SigningReplyHead, state: ContainerState, serial: String, name: String, expiresAt: Int,
        renewableFrom: Int, echo: SigningNonce, handle: Secret, otp: [OneTimeKey]
    ) {
        (self.head, self.state, self.serial, self.name, self.expiresAt) = (head, state, serial, name, expiresAt)
        (self.renewableFrom, self.echo, self.handle, self.otp) = (renewableFrom, echo, handle, otp)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.head)
        Member("state", \.state)
        Member("serial", \.serial, .ascii(1...20))
        Member("name", \.name, .shown(1...128))
        Member("exp", \.expiresAt)
        Member("renew", \.renewableFrom)
        Member("echo", \.echo)
        Member("handle", \.handle, .secret(bytes: 32))
        Member("otp", \.otp, .objects(0...4))
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard state == .unconfirmed else { throw .invalid("state", "is not UNCONFIRMED") }
        guard serial.utf8.allSatisfy(\.isASCIIDigit) else {
            throw .invalid("serial", "has other characters than digits")
        }
    }
}

/// The server's statement about an enrolment.
package struct EnrolmentRecord: SignedContent {
    package static let type = MessageType.record
    /// The number of the last record that a container can have; the first one is 0.
    package static let maximumSequence = 1000
    package let issuer: String
    package let did: SigningID
    /// When the container became active with these keys.
    package let issuedAt: Int
    package let pid: SigningID
    package let sub: String
    /// Counts the key sets of this container.
    package let sequence: Int
    package let previous: SigningHash?
    package let user: String
    package let identity: KeyThumbprint
    /// The hash of the device's signed key list.
    package let enrol: SigningHash
    package let transcript: SigningHash
    package let commit: CommitMode
    package let by: [RecordGround]
    package let approvalsFrom: Int
    package let keys: [KeyThumbprint]

    package init(
        issuer: String, did: SigningID, issuedAt: Int, pid: SigningID, sub: String, sequence: Int,
        previous: SigningHash? = nil, user: String, identity: KeyThumbprint, enrol: SigningHash,
        transcript: SigningHash, commit: CommitMode, by: [RecordGround], approvalsFrom: Int, keys: [KeyThumbprint]
    ) {
        (self.issuer, self.did, self.issuedAt, self.pid, self.sub) = (issuer, did, issuedAt, pid, sub)
        (self.sequence, self.previous, self.user, self.identity) = (sequence, previous, user, identity)
        (self.enrol, self.transcript, self.commit, self.by) = (enrol, transcript, commit, by)
        (self.approvalsFrom, self.keys) = (approvalsFrom, keys)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("aud", \.did)
        Member("iat", \.issuedAt)
        Member("pid", \.pid)
        Member("sub", \.sub, .ascii(1...64))
        Member("seq", \.sequence, .integer(0...EnrolmentRecord.maximumSequence))
        Member(optional: "prev", \.previous)
        Member("user", \.user, .shown(1...64))
        Member("identity", \.identity)
        Member("enrol", \.enrol)
        Member("transcript", \.transcript)
        Member("commit", \.commit)
        Member("by", \.by, .choices(1...3))
        Member("approvals", \.approvalsFrom)
        Member("keys", \.keys, .thumbprints(2...8))
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard (sequence == 0) == (previous == nil) else {
            throw .invalid("prev", "is missing, or there in the first record")
        }
    }
}

/// What a server relied on when it accepted keys.
package enum RecordGround: String, Hashable, MemberValue, CaseIterable {
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
