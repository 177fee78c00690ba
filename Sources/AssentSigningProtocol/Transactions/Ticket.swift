package import AssentCore

/// A transaction's id, as a push message, the list and a QR code carry it.
package struct Ticket: SignedContent {
    /// `tsp-tds+jwt`.
    package static let type = MessageType.ticket

    /// The issuer.
    package let issuer: String
    /// The transaction.
    package let txn: SigningID
    /// Until when it is open.
    package let expiresAt: Int
    /// By this the container that is meant recognises it.
    package let handle: SigningID?
    /// Whoever scans it first may claim it; instead of a handle.
    package let isClaim: Bool

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, txn: SigningID, expiresAt: Int, handle: SigningID? = nil, isClaim: Bool = false
    ) {
        self.issuer = issuer
        self.txn = txn
        self.expiresAt = expiresAt
        self.handle = handle
        self.isClaim = isClaim
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        txn = try reader.fixed("txn")
        expiresAt = try reader.integer("exp")
        handle = reader.has("h") ? try reader.fixed("h") : nil
        isClaim = try reader.flag("claim")
        guard (handle == nil) == isClaim else { throw .invalid("h", "and claim: there must be exactly one of them") }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "txn": txn.json, "exp": .integer(expiresAt), "h": handle.map { $0.json },
            "claim": isClaim ? true : nil,
        ])
    }
}

/// The content of `list`'s body.
package struct ListBody: MessagePart {
    /// How many seconds to wait for a transaction.
    package let wait: Int

    /// Notices that the device has got, which need not come again.
    package let seen: [SigningID]

    /// The content with these members; the reader checks their bounds.
    package init(wait: Int, seen: [SigningID] = []) {
        self.wait = wait
        self.seen = seen
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        wait = try reader.integer("wait", 0...25)
        seen = reader.has("seen") ? try reader.ids("seen", 1...Notice.limit) : []
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "wait": .integer(wait), "seen": seen.isEmpty ? nil : .array(seen.map(\.json)),
        ])
    }
}

/// The open transactions, the oldest first.
package struct TransactionList: ReplyContent {
    /// `tsp-list+jwt`.
    package static let type = MessageType.list

    /// What every reply has.
    package let head: SigningReplyHead
    /// Compact `tsp-tds+jwt` messages.
    package let tickets: [String]
    /// Whether there are more than these.
    package let more: Bool
    /// What has happened to the user's other devices, the oldest first.
    package let notices: [Notice]

    /// The content with these members; the reader checks their bounds.
    package init(
        head: SigningReplyHead, tickets: [String], more: Bool, notices: [Notice] = []
    ) {
        self.head = head
        self.tickets = tickets
        self.more = more
        self.notices = notices
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        head = try SigningReplyHead(reading: &reader)
        tickets = try reader.compacts("ids", 0...20)
        more = try reader.bool("more")
        notices = reader.has("notices") ? try reader.objects("notices", 1...Notice.limit) : []
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        head.with([
            "ids": tickets.jsonArray(JSONValue.string), "more": .bool(more),
            "notices": notices.isEmpty ? nil : .array(notices.map(\.json)),
        ])
    }
}

/// The content of `fetch`'s body.
package struct FetchBody: MessagePart {
    /// The transaction.
    package let txn: SigningID

    /// The content with these members; the reader checks their bounds.
    package init(
        txn: SigningID
    ) {
        self.txn = txn
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        txn = try reader.fixed("txn")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "txn": txn.json
        ])
    }
}

/// A document on its way to the device.
package struct Fetched: ReplyContent {
    /// `tsp-fetched+jwt`.
    package static let type = MessageType.fetched

    /// What every reply has.
    package let head: SigningReplyHead
    /// The compact `tsp-txd+jwt`.
    package let document: String

    /// The content with these members; the reader checks their bounds.
    package init(
        head: SigningReplyHead, document: String
    ) {
        self.head = head
        self.document = document
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        head = try SigningReplyHead(reading: &reader)
        document = try reader.compact("txd")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        head.with([
            "txd": .string(document)
        ])
    }
}

/// The content of `claim`'s body.
package struct ClaimBody: MessagePart {
    /// The compact `tsp-tds+jwt`.
    package let ticket: String

    /// The content with these members; the reader checks their bounds.
    package init(
        ticket: String
    ) {
        self.ticket = ticket
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        ticket = try reader.compact("tds", limit: MessageType.ticket.limit)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "tds": .string(ticket)
        ])
    }
}

/// The content of `create`'s body.
package struct CreateBody: MessagePart {
    /// What is to be signed.
    package let message: String
    /// The key that is to sign.
    package let label: String
    /// The request's id.
    package let rid: SigningID

    /// The content with these members; the reader checks their bounds.
    package init(
        message: String, label: String, rid: SigningID
    ) {
        self.message = message
        self.label = label
        self.rid = rid
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        message = try reader.shown("message", 1...1000)
        label = try reader.label("label")
        rid = try reader.fixed("rid")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "message": .string(message), "label": .string(label), "rid": rid.json,
        ])
    }
}

/// The content of `decide`'s body.
package struct DecideBody: MessagePart {
    /// The compact `tsp-decision+jwt`.
    package let decision: String
    /// The compact `tsp-possession+jwt`, if another key than the device key decided.
    package let possession: String?

    /// The content with these members; the reader checks their bounds.
    package init(
        decision: String, possession: String? = nil
    ) {
        self.decision = decision
        self.possession = possession
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        decision = try reader.compact("decision")
        possession = reader.has("possession") ? try reader.compact("possession") : nil
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "decision": .string(decision), "possession": possession.map { .string($0) },
        ])
    }
}
