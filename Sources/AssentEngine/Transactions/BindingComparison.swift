/// One thing that must be the same when a transaction is taken, in the order in which the first difference is reported.
///
/// ``TransactionSQL/take`` compares the same: a test takes with each of them changed.
enum ComparedField: CaseIterable {
    case subject, session, grant, key, maker, realm, policy, resource, policyRevision, journey, method, query,
        mediaType, body

    /// Why a transaction is refused that differs in this.
    var refusal: TransactionRefusal {
        switch self {
        case .subject: .subject
        case .session: .session
        case .grant: .grant
        case .key: .key
        case .maker: .maker
        case .realm: .realm
        case .policy: .policy
        case .resource: .resource
        case .policyRevision: .policyRevision
        case .journey: .journey
        case .method: .method
        case .query: .query
        case .mediaType: .mediaType
        case .body: .body
        }
    }

    /// What a policy must bind for this to be compared; `nil` for what is always compared.
    var bound: BoundField? {
        switch self {
        case .method: .method
        case .query: .query
        case .mediaType, .body: .body
        default: nil
        }
    }

    /// What a binding says of this.
    func values(of binding: TransactionBinding) -> [String?] {
        switch self {
        case .subject: [binding.userID]
        case .session: [binding.sessionID, binding.sessionAuditID]
        case .grant: [binding.grantID]
        case .key: [binding.sender?.stored]
        case .maker: [binding.maker.text]
        case .realm: [binding.realm]
        case .policy: [binding.policySet, binding.policy]
        case .resource: [binding.resource]
        case .policyRevision: [binding.policyRevision]
        case .journey: [binding.strategy, binding.specifier]
        case .method: [binding.method]
        case .query: [binding.query]
        case .mediaType: [binding.mediaType]
        case .body: [binding.bodyDigest]
        }
    }
}

extension TransactionBinding {
    /// The first field in which `other` differs, of those that are compared. The policy's revision is one of them, so
    /// both bind the same.
    func firstDifference(from other: TransactionBinding) -> TransactionRefusal? {
        ComparedField.allCases.first { field in
            field.bound.map(bound.contains) ?? true && field.values(of: self) != field.values(of: other)
        }?.refusal
    }
}
