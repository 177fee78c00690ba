import AssentCore

/// A line of a policy, and where its value stands in one request.
struct PlacedRule {
    let rule: DisplayRule
    let field: ContentPointer
    let suffix: ContentPointer?

    private init(_ rule: DisplayRule, in element: ContentPointer?) {
        func place(_ text: String) -> ContentPointer {
            element?.appending(field: text) ?? ContentPointer(field: text)
        }
        self.rule = rule
        field = place(rule.field)
        suffix = rule.suffix.map(place)
    }

    /// What the value is called in a refusal.
    var name: String { rule.each == nil ? rule.field : field.text }

    /// What the unit is called in a refusal.
    var suffixName: String { rule.each == nil ? rule.suffix ?? "" : suffix?.text ?? "" }

    /// What is shown.
    var places: [ContentPointer] { [field] + (suffix.map { [$0] } ?? []) }

    /// The lines of a policy for one request, in their order. Rules in a row about the same list stand together for
    /// each of its elements.
    ///
    /// - Throws: ``EngineError`` `invalidRequest` when a list is missing or empty, and for more lines
    ///   than a user reads.
    static func all(_ rules: [DisplayRule], in request: ShownContent) throws(EngineError) -> [PlacedRule] {
        var placed: [PlacedRule] = []
        var rest = rules[...]
        while let first = rest.first {
            let group = rest.prefix { $0.each == first.each }
            rest = rest.dropFirst(group.count)
            var elements: [ContentPointer?] = [nil]
            if let each = first.each {
                guard let found = first.list.flatMap(request.elements) else {
                    throw TransactionDisplay.refusal("\(each) is missing, or not a list with an element.")
                }
                elements = found
            }
            guard placed.count + elements.count * group.count <= TransactionDisplay.maximumLines else {
                throw TransactionDisplay.refusal(
                    "it has more than \(TransactionDisplay.maximumLines) lines. Send several requests.")
            }
            for element in elements { placed += group.map { PlacedRule($0, in: element) } }
        }
        return placed
    }
}

extension DisplayRule {
    /// The list of ``each``; `nil` when there is none, or it is not a place.
    var list: ContentPointer? { each.flatMap(ContentPointer.init(list:)) }

    /// Where the value stands that is not in a list.
    var place: ContentPointer { ContentPointer(field: field) }
}
