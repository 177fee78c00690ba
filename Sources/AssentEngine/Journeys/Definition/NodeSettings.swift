package import AssentCore

/// The settings of a node, read with the types of node that may stand inside of it. Whatever is wrong is noted in them.
package typealias NodeSettings = SettingsReader<NodeCatalog>

extension SettingsReader<NodeCatalog> {
    /// A text to be shown: plain, or by language, of which English is taken, else the first.
    package func text(_ key: String, default fallback: String? = nil) -> String {
        guard json(key)?.object != nil else { return string(key, default: fallback) }
        return localizedText(key)?.fallback ?? fallback ?? ""
    }

    /// A text to be shown, or `nil` when there is none.
    package func optionalText(_ key: String) -> String? { has(key) ? text(key) : nil }

    /// Nodes inside of this one: a list of mappings with `type` and the settings of that type.
    package func nodes(_ key: String) -> [any RunnableNode] {
        guard has(key) else {
            refuse(key, "is missing")
            return []
        }
        let readers = list(key)
        if json(key)?.array?.isEmpty == true { refuse(key, "must be a list of nodes") }
        return readers.compactMap { reader in
            let type = reader.string("type")
            if !type.isEmpty, !context.has(type) { reader.refuse("type", context.unknown(type)) }
            return context.make(type, reader)
        }
    }
}
