/// A transaction's id, as a push message, the list and a QR code carry it.
package struct Ticket: SignedContent {
    package static let type = MessageType.ticket
    package let issuer: String
    package let txn: SigningID
    package let expiresAt: Int
    /// By this the container that is meant recognises it.
    package let handle: SigningID?
    /// Anyone who scans it first may claim it; instead of a handle.
    package let isClaim: Bool

    package init(issuer: String, txn: SigningID, expiresAt: Int, handle: SigningID? = nil, isClaim: Bool = false) {
        (self.issuer, self.txn, self.expiresAt, self.handle, self.isClaim) = (issuer, txn, expiresAt, handle, isClaim)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("txn", \.txn)
        Member("exp", \.expiresAt)
        Member(optional: "h", \.handle)
        Member(flag: "claim", \.isClaim)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard (handle == nil) == isClaim else { throw .invalid("h", "and claim: there must be exactly one of them") }
    }
}

/// The content of `list`'s body.
package struct ListBody: ShapedPart {
    /// How many seconds to wait for a transaction.
    package let wait: Int

    /// Notices that the device has got, which need not come again.
    package let seen: [SigningID]

    package init(wait: Int, seen: [SigningID] = []) { (self.wait, self.seen) = (wait, seen) }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("wait", \.wait, .integer(0...25))
        Member(unlessEmpty: "seen", \.seen, .ids(1...Notice.limit))
    }
}

/// The open transactions, the oldest first.
package struct TransactionList: ReplyContent {
    package static let type = MessageType.list
    package let head: SigningReplyHead
    /// Compact `tsp-tds+jwt` messages.
    package let tickets: [String]
    package let more: Bool
    /// What has happened to the user's other devices, the oldest first.
    package let notices: [Notice]

    package init(head: SigningReplyHead, tickets: [String], more: Bool, notices: [Notice] = []) {
        (self.head, self.tickets, self.more, self.notices) = (head, tickets, more, notices)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.head)
        Member("ids", \.tickets, .compacts(0...20))
        Member("more", \.more)
        Member(unlessEmpty: "notices", \.notices, .objects(1...Notice.limit))
    }
}

/// The content of `fetch`'s body.
package struct FetchBody: ShapedPart {
    package let txn: SigningID

    package init(txn: SigningID) { self.txn = txn }

    package static let shape = MessageShape<Self>(Self.init) { Member("txn", \.txn) }
}

/// A document on its way to the device.
package struct Fetched: ReplyContent {
    package static let type = MessageType.fetched
    package let head: SigningReplyHead
    /// The compact `tsp-txd+jwt`.
    package let document: String

    package init(head: SigningReplyHead, document: String) { (self.head, self.document) = (head, document) }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.head)
        Member("txd", \.document, .compact)
    }
}

/// The content of `claim`'s body.
package struct ClaimBody: ShapedPart {
    /// The compact `tsp-tds+jwt`.
    package let ticket: String

    package init(ticket: String) { self.ticket = ticket }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("tds", \.ticket, .compact(limit: MessageType.ticket.limit))
    }
}

/// The content of `create`'s body.
package struct CreateBody: ShapedPart {
    package let message: String
    /// The key that is to sign.
    package let label: String
    package let rid: SigningID

    package init(message: String, label: String, rid: SigningID) {
        (self.message, self.label, self.rid) = (message, label, rid)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("message", \.message, .shown(1...1000))
        Member("label", \.label, .label)
        Member("rid", \.rid)
    }
}

/// The content of `decide`'s body.
package struct DecideBody: ShapedPart {
    /// The compact `tsp-decision+jwt`.
    package let decision: String
    /// The compact `tsp-possession+jwt`, if another key than the device key decided.
    package let possession: String?

    package init(decision: String, possession: String? = nil) {
        (self.decision, self.possession) = (decision, possession)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("decision", \.decision, .compact)
        Member(optional: "possession", \.possession, .compact)
    }
}
