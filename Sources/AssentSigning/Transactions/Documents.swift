import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// What the server asks the user: ids of transactions, and documents, which are checked before they are shown.
struct Documents: Sendable {
    let parts: DeviceParts

    // MARK: Ids

    /// Reads a transaction's id, and finds the container that it is for.
    func info(_ id: String, user: String?, on device: SigningDevice) async throws -> SigningTransactionInfo {
        let ticket: UnverifiedMessage<Ticket>
        do {
            ticket = try UnverifiedMessage(id)
        } catch {
            throw SigningError(.invalidArgument, "This is not a transaction's id. \(error.detail)")
        }
        let content = ticket.content
        var fitting: [(container: SigningContainer, isVerified: Bool)] = []
        for record in try await parts.records.all() where StrictJSON.same(record.issuer, content.issuer) {
            guard let container = try SigningContainer(record, on: device), let handle = record.handle else { continue }
            if let expected = content.handle {
                let own = SigningID.handle(key: handle, issuer: record.issuer, txn: content.txn)
                guard ConstantTime.equal(own.bytes, expected.bytes) else { continue }
            }
            fitting.append((container, try Self.isVerified(ticket, by: record)))
        }
        if let user { fitting = fitting.filter { ContainerFilter(user: user).matches($0.container) } }
        return SigningTransactionInfo(
            container: try fitting.map(\.container).single(), ticket: ticket,
            isVerified: fitting.allSatisfy(\.isVerified))
    }

    /// Whether the id's signer is known here; when it is not, the configuration is read at the next call. A bad
    /// signature of a known key is an error.
    private static func isVerified(
        _ ticket: UnverifiedMessage<Ticket>, by record: ContainerRecord
    ) throws(SigningError) -> Bool {
        do {
            _ = try record.trust().verified(ticket.compact, as: Ticket.self)
            return true
        } catch  where error.code == .unknownKey {
            return false
        } catch {
            throw SigningError(error)
        }
    }

    func list(of id: SigningID, wait: Int, password: Secret?) async throws -> TransactionList {
        guard (0...25).contains(wait) else {
            throw SigningError(.invalidArgument, "The server waits at most 25 seconds.")
        }
        var (record, typed) = (try await parts.records.load(id), Secret?.none)
        var retry = CallRetry(sends: 0)
        while true {
            do {
                let transport = try await parts.passwords.transportKey(&record, password, &typed)
                let body = ListBody(wait: wait, seen: await parts.memory.receivedNotices(id))
                let request = Request(.list, body, wait: wait)
                let list = try await parts.calls.ask(request, of: record, by: .given) { received in
                    try await parts.calls.verified(received.opened(with: transport), as: TransactionList.self).content
                }
                await parts.memory.hear(list.notices, id)
                return list
            } catch {
                try await parts.calls.recover(&record, &retry, from: error)
            }
        }
    }

    // MARK: Documents

    /// Fetches the document of a transaction, and checks what every device checks.
    func fetch(_ info: SigningTransactionInfo, password: Secret?) async throws -> SigningTransaction {
        var record = try await parts.records.load(info.container.record)
        if !info.isVerified {
            record = try await parts.calls.refresh(record, sends: parts.calls.sends(.status))
            _ = try SigningError.mapped(try record.trust().verified(info.ticket.compact, as: Ticket.self))
        }
        if info.isClaim {
            // The first container wins; from then on it is this user's, as any other.
            _ = try await parts.calls.ask(
                Request(.claim, ClaimBody(ticket: info.ticket.compact)), of: record, read: parts.calls.status)
            record = try await parts.records.load(record.id)
        }
        let txn = info.ticket.content.txn
        let request = Request(.fetch, FetchBody(txn: txn))
        return try await shown(request, info.container, &record, password, asked: .transaction(txn))
    }

    /// Begins a transaction of this device's own, about this text.
    func record(
        _ message: String, label: String?, in container: SigningContainer, password: Secret?
    ) async throws -> SigningTransaction {
        try SigningError.check(message, 1...1000, at: "message")
        let keys = container.keys(usage: .sign, label: label)
        guard let key = keys.first, keys.count == 1 else {
            let names = container.keys(usage: .sign).map(\.label).joined(separator: ", ")
            throw SigningError(
                .invalidArgument,
                names.isEmpty ? "The container has no keys of usage sign." : "Name one of the keys: \(names).")
        }
        var record = try await parts.records.load(container.record)
        // The same request again is the same transaction.
        let body = CreateBody(message: message, label: key.label, rid: SigningID(random: parts.random))
        return try await shown(Request(.create, body), container, &record, password, asked: .record(message))
    }

    /// What a document has to be about.
    private enum Asked {
        case transaction(SigningID)
        case record(String)

        func check(_ document: TransactionDocument, for audience: DocumentAudience) throws(SigningProtocolError) {
            switch self {
            case .transaction(let txn): try document.check(for: audience, txn: txn)
            case .record(let message):
                try document.check(for: audience, txn: document.txn)
                guard document.kind == .record, StrictJSON.same(document.body.text ?? "", message),
                    document.request == .details(message)
                else { throw SigningProtocolError(.documentRefused, "The document is about another text.") }
            }
        }
    }

    private func shown(
        _ request: Request, _ container: SigningContainer, _ record: inout ContainerRecord, _ password: Secret?,
        asked: Asked
    ) async throws -> SigningTransaction {
        var (retry, typed) = (CallRetry(sends: 0), Secret?.none)
        while true {
            do {
                let transport = try await parts.passwords.transportKey(&record, password, &typed)
                return try await parts.calls.ask(request, of: record, by: .given) { received in
                    let fetched = try await parts.calls.verified(received.opened(with: transport), as: Fetched.self)
                    let document = try received.trust.verified(fetched.content.document, as: TransactionDocument.self)
                    try asked.check(document.content, for: received.record.audience())
                    return SigningTransaction(
                        document: document, container: container, serverTime: fetched.content.head.issuedAt,
                        fetchedAt: parts.uptime())
                }
            } catch {
                try await parts.calls.recover(&record, &retry, from: error)
            }
        }
    }
}
