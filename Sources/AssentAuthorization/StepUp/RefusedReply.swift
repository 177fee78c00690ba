import AssentCore
import AssentJourney

/// The reply that asked for an approval, for callers that want it when there is none.
struct RefusedReply {
    /// What is read of a reply that nobody wants, so that its connection can be used again.
    private static let drained = 64 << 10

    private let isWanted: Bool
    private var kept: HTTPReply?

    init(isWanted: Bool) { self.isWanted = isWanted }

    /// Reads a reply to its end, and keeps it if it is wanted and has at most `limit` bytes.
    mutating func drain(_ reply: HTTPReply, limit: Int) async {
        let content = try? await reply.body.collect(upTo: isWanted ? limit : Self.drained)
        guard isWanted, let content else { return }
        kept = HTTPReply(reply.response, body: HTTPBody(content))
    }

    /// From here on another sending decides.
    mutating func forget() { kept = nil }

    /// The kept reply, if the error only says that nobody approved: mistakes of the configuration, and advices that
    /// must not be believed, stay errors.
    func reply(after error: any Error) -> HTTPReply? {
        switch error {
        case let error as AuthorizationError:
            let codes: [AuthorizationError.Code] = [.declined, .expired, .timedOut]
            return codes.contains(error.code) ? kept : nil
        case is CancellationError: return nil
        default: return kept
        }
    }
}
