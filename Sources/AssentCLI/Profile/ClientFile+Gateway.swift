import AssentCore

extension ClientFile {
    /// Where a server's gateway was when it wrote the file: `lastGateway` in it. Clients do not go by that. The next
    /// start does, to tell the operator's origins from its own.
    enum ServedGateway: Sendable, Equatable {
        /// There was none: all origins are the operator's.
        case missing
        case at(String)

        fileprivate var text: String {
            switch self {
            case .missing: "none"
            case .at(let address): address
            }
        }
    }

    private static let lastGatewayName = "lastGateway"

    /// Where the gateway was; `nil` in a file that does not say so.
    static func lastGateway(_ reader: SettingsReader<Void>) throws -> ServedGateway? {
        guard let text = reader.optionalString(lastGatewayName) else { return nil }
        if text == ServedGateway.missing.text { return .missing }
        guard (try? Origin(text)) != nil else {
            throw reader.issue(lastGatewayName, "is written by 'assent serve': leave it as it was, or leave it out")
        }
        return .at(text)
    }

    /// The lines of the file.
    var gatewayLines: [String] {
        guard let lastGateway else { return [] }
        return [
            "# For the next start of `assent serve`: where its gateway was.",
            "\(Self.lastGatewayName): \(Self.quoted(lastGateway.text))",
        ]
    }

    /// Whether an address is at the gateway of this server.
    func isGateway(at address: String) -> Bool {
        guard let origin = try? Origin(address) else { return false }
        return resources.contains { (try? Origin($0.origin)) == origin }
    }

    /// Whether the paths of an earlier file led to the gateway of that time, and this server has it elsewhere, or has
    /// none. Where there was none, and paths led nowhere, they lead to the one that there is now: the start without it
    /// may have taken the address away.
    func movesBase(of kept: ClientFile) -> Bool {
        guard let base = kept.resourceBase else {
            return kept.lastGateway == ServedGateway.missing && resourceBase != nil
        }
        guard case .at(let address)? = kept.lastGateway, let last = try? Origin(address), (try? Origin(base)) == last
        else { return false }
        return !isGateway(at: address)
    }
}
