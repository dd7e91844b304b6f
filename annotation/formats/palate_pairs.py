"""Our own format of labelled pairs: JSON Lines, one pair a line. Nothing is lost in it.

Export, import into an empty project, export again: the two files are equal. The flat form for
spreadsheets (`annotation.formats.palate_csv`) has the same content.

    key              value                                                           left out when
    prompt           text, or [{"role": system|user|assistant, "content": text}…]
                     whose last turn is the user's (a single user turn is a text)
    first, second    {"text": text, "producer": text}; a text alone is {"text": …}
                     (`producer` is left out when empty, or when a live seal covers the pair: V1)
    persona          {"pseudonym", "summary", "features": {…}}                       there is none
    category, language                     of the prompt                             empty
    kind             imported | catalog | counterfactual                             imported
    synthetic        true | false                                                    false
    state            held | parked | open | disputed | done | dropped                open
    source           where the pair came from, e.g. "pairs.jsonl:12"                 empty
    details          object: what else the source said                               empty
    labels           list, in the order of the leases (oldest first)                 none
    decisions        {axis: decision} for the axes that have one                     none
    meta             anything; never read

A label:

    annotator        the pseudonym of a member with an account, else the external name
    verdicts         {axis: first | second | tie | both_bad}; axes without a verdict are left out
    strengths        {axis: 1 | 2 | 3}                                               none
    tags             list of texts, sorted                                           none
    comment          text                                                            empty
    active_ms        whole number                                                    0
    at               ISO 8601 with zone, of the revision that holds
    guideline        number of the guidelines' version                               none
    first_left       true | false: the first answer stood left                       true
    late, extra      true: after the lease ran out; beside the labels that count     false
    repeat           1, 2, …: the same pair shown to her again                       0

A decision (`annotation.models.Decision`):

    verdict          first | second | tie | both_bad; "" while unresolved
    source           unanimous | majority | adjudicated | unresolved | synthetic
    labels           how many labels it rests on
    posterior        {verdict: probability}
    blind_verdict, reason, note            of an adjudication                        empty

What is not in it: gold items, drafts, skipped and expired leases, taken-back labels, public ids,
who decided, and whether a label came by page, API or import.

An import takes decisions over as they are where the pair is new; without them it settles the item
from its labels. Without `state` it holds back pairs that look wrong; with a state other than held
or dropped it does not. The annotator's name becomes an external annotator of the project, unless a
member has this pseudonym: then the label must be there already, since nobody labels in her name.
"""
