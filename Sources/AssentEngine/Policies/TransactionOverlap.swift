/// Which policies could ask for two transactions of one access, which can have one.
extension Policy {
    /// Whether this policy and another one could both ask for a transaction of one access. What cannot be told from
    /// the file alone could be.
    func mayAskBeside(_ other: Policy) -> Bool {
        guard isActive, other.isActive, let condition, let otherCondition = other.condition,
            !condition.transactions.isEmpty, !otherCondition.transactions.isEmpty
        else { return false }
        return !Set(actionValues.keys).isDisjoint(with: other.actionValues.keys)
            && !subject.excludes(other.subject) && !condition.excludes(otherCondition)
            && resources.contains { resource in other.resources.contains(where: resource.overlaps) }
    }
}

extension PolicySubject {
    /// Whether nobody can be both.
    fileprivate func excludes(_ other: PolicySubject) -> Bool {
        switch (self, other) {
        case (.none, _), (_, .none): true
        case (.and(let subjects), _): subjects.contains { $0.excludes(other) }
        case (_, .and(let subjects)): subjects.contains { excludes($0) }
        case (.or(let subjects), _): subjects.allSatisfy { $0.excludes(other) }
        case (_, .or(let subjects)): subjects.allSatisfy { excludes($0) }
        case (.identity(let ids), .identity(let others)): Set(ids).isDisjoint(with: others)
        case (.not(.identity(let others)), .identity(let ids)), (.identity(let ids), .not(.identity(let others))):
            Set(ids).isSubset(of: others)
        case (.not(let inner), _): inner == other
        case (_, .not(let inner)): inner == self
        default: false
        }
    }
}

extension PolicyCondition {
    /// Whether both can never hold at once.
    fileprivate func excludes(_ other: PolicyCondition) -> Bool {
        switch (self, other) {
        case (.and(let conditions), _): conditions.contains { $0.excludes(other) }
        case (_, .and(let conditions)): conditions.contains { excludes($0) }
        case (.or(let conditions), _): conditions.allSatisfy { $0.excludes(other) }
        case (_, .or(let conditions)): conditions.allSatisfy { excludes($0) }
        case (.authLevel(let level), .not(.authLevel(let bound))), (.not(.authLevel(let bound)), .authLevel(let level)):
            bound <= level
        case (.not(let inner), _): inner == other
        case (_, .not(let inner)): inner == self
        default: false
        }
    }
}
