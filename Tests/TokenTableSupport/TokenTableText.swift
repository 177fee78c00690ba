import AssentTokens

extension TokenTable {
    /// The table as `docs/token-life-cycle.md` has it.
    package static var markdown: String {
        let head = [
            "| access token | refresh token | session | answer | returned | stored afterwards | session afterwards | sent | the next call |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        return (head + rows.map(line)).joined(separator: "\n") + "\n"
    }

    private static func line(_ row: TokenTableRow) -> String {
        let sent = row.sent.isEmpty ? "nothing" : row.sent.map(\.rawValue).joined(separator: ", ")
        var next = text(row.next, isNext: true)
        if let elsewhere = row.nextElsewhere, elsewhere != row.next {
            next += "; elsewhere: \(text(elsewhere, isNext: true))"
        } else if row.nextElsewhere != nil {
            next += "; elsewhere by the session"
        }
        if let withoutReason = row.nextWithoutReason {
            next += "; refused without a reason: \(text(withoutReason, isNext: true))"
        }
        let left = row.stored == .none && row.left == .none ? "nothing" : row.left.rawValue
        let cells = [
            row.stored.rawValue, row.hasRefreshToken ? "yes" : "no", row.session.rawValue, row.answer.rawValue,
            text(row.returned, isNext: false), left, row.sessionLeft.rawValue, sent, next,
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    private static func text(_ returned: TokenTableRow.Returned, isNext: Bool) -> String {
        switch returned {
        case .stored: isNext ? "what is stored" : "the stored one"
        case .new: "a new one"
        case .error(let code): "error `\(code)`"
        case .signIn(let reason): "error `signInNeeded` (`\(reason)`)"
        case .cancelled: "`CancellationError`"
        case .nothing: "nothing"
        }
    }
}
