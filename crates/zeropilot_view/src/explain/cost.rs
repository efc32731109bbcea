//! What configs cost with the user's own model: memory, traffic and time side by side.

use zeropilot_ask::Footprint;
use zeropilot_text::{Text, tr};

use super::page::Page;
use crate::simulate::human::{gigabytes, seconds};
use crate::{Layout, escaped};

/// Costs of one config or of several, in the order of their names.
pub(super) fn costs(layout: &Layout, model: &str, names: &[&str], costs: &[Footprint]) -> String {
    let language = layout.language;
    let mut page = Page::new(layout);
    let (model, names) = (escaped(model), names.iter().map(|name| escaped(name)));
    let names = names.collect::<Vec<_>>().join(" → ");
    page.line(&tr!(language, "{names} with {model}, per step:", "{names}，模型 {model}，每步："));
    let label = |english, chinese| Text::new(english, chinese).get(language);
    let row = |said: &dyn Fn(&Footprint) -> String| {
        costs.iter().map(said).collect::<Vec<_>>().join(" → ")
    };
    let mut rows = vec![
        (label("GPU memory", "显存"), row(&|cost| cost.device.to_string())),
        (label("host memory", "每节点主机内存"), row(&|cost| cost.node.to_string())),
        (label("sent by each GPU", "每卡发送"), row(&|cost| gigabytes(cost.traffic.sent))),
    ];
    let host = |cost: &Footprint| cost.traffic.to_device + cost.traffic.to_host;
    if costs.iter().any(|cost| host(cost) > 0) {
        rows.push((
            label("to and from the host", "与主机之间传输"),
            row(&|cost| gigabytes(host(cost))),
        ));
    }
    if costs.iter().all(|cost| cost.time.is_some()) {
        let total = |cost: &Footprint| cost.time.map(|time| time.expected.total);
        rows.push((
            label("time", "时间"),
            row(&|cost| total(cost).map_or_else(String::new, seconds)),
        ));
    }
    rows.push((label("sequences", "序列数"), row(&|cost| cost.sequences.to_string())));
    page.rows(2, &rows);
    page.into_text()
}
