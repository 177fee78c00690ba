import AssentCore
import AssentOTP
import AssentStore

/// The keys for one-time codes of all devices, after a backup was restored.
enum SigningOneTimeKeys {
    /// How many keys a statement names.
    private static let part = 200

    /// The statements that make codes useless that may have been used since the backup. Each returns the rows that it
    /// has changed.
    ///
    /// Of a key by time, the codes are spent that a node may have accepted, whose clock is ahead of this one. How far a
    /// key by counter has come nobody knows: it is destroyed, and the next renewal of its device brings another one.
    /// Answers to challenges need a challenge of the server and are left alone.
    static func fence(_ context: EngineContext) async throws -> [SQLStatement] {
        let rows = try await context.database.run(
            .read("SELECT did, label, sealed_uri, counter FROM signing_otp_keys ORDER BY label, did"))
        var counted: [String: [String]] = [:]
        var timed: [Spent: [String]] = [:]
        for row in rows {
            let (did, label) = (try row.text("did"), try row.text("label"))
            let uri = try SigningOneTimeSecret.open(row, context)
            guard let account = try? OTPAuthURI(uri.reveal()) else { continue }
            if let totp = try account.totp() {
                let next = (context.clock.epochSeconds + NodeClocks.difference) / Int64(totp.period) + 2
                if try row.integer("counter") < next { timed[Spent(label: label, next: next), default: []].append(did) }
            } else if try account.hotp() != nil {
                counted[label, default: []].append(did)
            }
        }
        return timed.flatMap { spent, devices in
            parts(of: devices).map { part in
                """
                UPDATE signing_otp_keys SET counter = \(spent.next) WHERE label = \(spent.label) AND did IN (\(part))
                RETURNING did
                """
            }
        }.map { SQLStatement($0) }
            + counted.flatMap { label, devices in
                parts(of: devices).map {
                    "DELETE FROM signing_otp_keys WHERE label = \(label) AND did IN (\($0)) RETURNING did"
                }
            }.map { SQLStatement($0) }
    }

    private struct Spent: Hashable {
        let label: String
        /// The first step whose code is not spent.
        let next: Int64
    }

    private static func parts(of devices: [String]) -> [SQL] {
        stride(from: 0, to: devices.count, by: part).map { start in
            let part = devices[start..<min(start + Self.part, devices.count)]
            return part.dropFirst().reduce(part.first.map { "\($0)" as SQL } ?? "NULL") { "\($0), \($1)" }
        }
    }
}
