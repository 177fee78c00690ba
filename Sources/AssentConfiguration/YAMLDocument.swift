import AssentCore
import Yams

/// The one document of a YAML file, with the lines of its values.
struct YAMLDocument {
    /// The most values, and the deepest nesting, that a file may have. Aliases could otherwise make a small file huge.
    private static let limits = (values: 100_000, depth: 64)

    /// What the file says.
    let value: SettingsValue

    private let root: Node

    init(_ text: String, file: String) throws(ConfigurationError) {
        do {
            guard let node = try Yams.compose(yaml: text) else {
                throw ConfigurationError(file: file, line: nil, "the file is empty")
            }
            var count = 0
            value = try Self.value(of: node, file: file, depth: 0, count: &count)
            root = node
        } catch let error as ConfigurationError {
            throw error
        } catch {
            if let line = Self.lineIndentedByTab(text) {
                throw ConfigurationError(
                    file: file, line: line, "this is not YAML: the line begins with a tab. Indent with spaces")
            }
            let (line, text) = (error as? YamlError).map(Self.explain) ?? (nil, "it cannot be read")
            throw ConfigurationError(file: file, line: line, "this is not YAML: \(text)")
        }
        guard case .mapping = value else {
            throw ConfigurationError(file: file, line: root.mark?.line, "the file must be a mapping")
        }
    }

    /// The first line, from 1, whose indentation has a tab: what a parser says of it helps nobody.
    private static func lineIndentedByTab(_ text: String) -> Int? {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .firstIndex { $0.prefix { $0 == " " || $0 == "\t" }.contains("\t") }.map { $0 + 1 }
    }

    private static func value(of node: Node, file: String, depth: Int, count: inout Int) throws -> SettingsValue {
        count += 1
        guard depth <= limits.depth, count <= limits.values else {
            throw ConfigurationError(file: file, line: node.mark?.line, "has too many values, or nests them too deeply")
        }
        switch node {
        case .scalar(let scalar): return .scalar(json(node, scalar), text: scalar.string)
        case .sequence(let sequence):
            return .list(try sequence.map { try value(of: $0, file: file, depth: depth + 1, count: &count) })
        case .mapping(let mapping):
            var members: [SettingsValue.Member] = []
            var names: Set<String> = []
            for (key, inner) in mapping {
                guard let name = key.scalar?.string else {
                    throw ConfigurationError(file: file, line: key.mark?.line, "a key must be a plain text")
                }
                guard names.insert(name).inserted else {
                    throw ConfigurationError(file: file, line: key.mark?.line, "\(name) occurs twice")
                }
                members.append(
                    .init(name: name, value: try value(of: inner, file: file, depth: depth + 1, count: &count)))
            }
            return .mapping(members)
        case .alias:
            throw ConfigurationError(file: file, line: node.mark?.line, "aliases cannot stand here")
        }
    }

    /// A scalar with its type; in quotes it is a text.
    private static func json(_ node: Node, _ scalar: Node.Scalar) -> JSONValue {
        guard scalar.style == .plain || scalar.style == .any else { return .string(scalar.string) }
        if node.null != nil { return .null }
        if let value = node.bool { return .bool(value) }
        if let value = node.int { return .integer(value) }
        if let number = node.float.flatMap({ JSONNumber($0) }) { return .number(number) }
        return .string(scalar.string)
    }

    /// The line of the value at `path`, for example `policies[0].condition.type`, or of the nearest place above it.
    func line(of path: String) -> Int? {
        var (current, found, rest) = (root, root.mark?.line, Substring(path))
        while !rest.isEmpty {
            if rest.first == "." { rest = rest.dropFirst() }
            if rest.first == "[", let end = rest.firstIndex(of: "]"), case .sequence(let sequence) = current {
                guard let index = Int(rest[rest.index(after: rest.startIndex)..<end]), sequence.indices.contains(index)
                else { return found }
                current = sequence[index]
                found = current.mark?.line ?? found
                rest = rest[rest.index(after: end)...]
            } else if case .mapping(let mapping) = current, let (key, value) = Self.member(of: mapping, for: rest) {
                found = key.mark?.line ?? found
                current = value
                rest = rest.dropFirst(key.scalar?.string.count ?? rest.count)
            } else {
                return found
            }
        }
        return found
    }

    /// The member whose key `path` begins with; the longest, because a key may have dots itself, as hosts do.
    private static func member(of mapping: Node.Mapping, for path: Substring) -> (key: Node, value: Node)? {
        mapping.filter { key, _ in
            guard let name = key.scalar?.string, path.hasPrefix(name) else { return false }
            let next = path.dropFirst(name.count).first
            return next == nil || next == "." || next == "["
        }.max { ($0.key.scalar?.string.count ?? 0) < ($1.key.scalar?.string.count ?? 0) }
            .map { ($0.key, $0.value) }
    }

    private static func explain(_ error: YamlError) -> (line: Int?, text: String) {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            (mark.line, problem)
        case .duplicatedKeysInMapping(let keys, let context): (context.mark.line, "the keys \(keys) occur twice")
        default: (nil, "it cannot be read")
        }
    }
}
